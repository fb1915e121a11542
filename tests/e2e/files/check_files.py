"""Files that tkc reads and writes: full disks, folders that may not be written, links, and names of any bytes.

usage: check_files.py TKC

A write that fails ends with status 3 and the system's reason, and what was there before stays.
"""

import json
import os
import pathlib
import resource
import shutil
import stat
import struct
import subprocess
import sys
import tempfile

TKC = str(pathlib.Path(sys.argv[1]).resolve())
COPY = "kernel copy(x: f32[N]) -> (y: f32[N]) {\n  y[i] = x[i]\n}\n"
# As the formatter would not leave it, and longer than a block of a file system.
LOOSE = "// padding\n" * 2000 + COPY.replace("y[i] = x[i]", "y[i]=x[i]")
wrong = []


def run(*arguments, **options):
    return subprocess.run([TKC, *map(os.fsencode, arguments)], capture_output=True, timeout=120, check=False, **options)


def expect(condition, what, done=None):
    if not condition:
        wrong.append(what + (f": status {done.returncode}: {done.stderr[-300:]}" if done else ""))


def no_temporaries(folder, what):
    left = [name for name in os.listdir(folder) if name.startswith(".tk-")]
    expect(not left, f"{what}: left {left}")


def limited():
    """A disk that is full after 8 KiB: a write beyond that fails with EFBIG. Python ignores SIGXFSZ."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))


def full_disk(folder):
    """Each command writes more than there is room for, over a file that was there."""
    source, out = folder / "loose.tk", folder / "out"
    source.write_text(LOOSE)
    npy = folder / "y.npy"
    commands = {
        "fmt -i": (["fmt", "-i", source], source),
        "build -o": (["build", source, "--target", "cpu", "--emit", "tk", "-o", out], out),
        "run --out": (["run", source, "--target", "cpu", "--dim", "N=5000", "--out", f"y={npy}"], npy),
    }
    for what, (command, path) in commands.items():
        if path != source:
            path.write_text("before")
        before = path.read_bytes()
        yield what, command, path, before


def files_on_a_full_disk(folder):
    for what, command, path, before in full_disk(folder):
        environment = os.environ | {"TK_CACHE": "off"}
        done = run(*command, preexec_fn=limited, restore_signals=False, env=environment)
        if what == "build -o":
            continue  # a short text fits
        expect(done.returncode == 3 and b"File too large" in done.stderr, f"{what}, a full disk", done)
        expect(path.read_bytes() == before, f"{what}: {path} is not what it was")
    no_temporaries(folder, "a full disk")


def files_on_a_small_file_system(folder):
    """On a tmpfs of 64 KiB, where this process may mount one."""
    small = folder / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small], capture_output=True, check=False)
    if mounted.returncode != 0:
        print("not run: a small file system (mount is not permitted)")
        return
    try:
        source = small / "loose.tk"
        source.write_text(LOOSE)
        filler = small / "filler"
        descriptor = os.open(filler, os.O_WRONLY | os.O_CREAT)
        try:
            while True:
                os.write(descriptor, b"x" * 4096)
        except OSError:
            os.close(descriptor)
        done = run("fmt", "-i", source)
        expect(done.returncode == 3 and b"No space left on device" in done.stderr, "fmt -i, no space", done)
        expect(source.read_text() == LOOSE, "fmt -i, no space: the source is not what it was")
        done = run("build", source, "--target", "cpu", "--emit", "tk", "-o", small / "out")
        expect(done.returncode == 3 and not (small / "out").exists(), "build, no space", done)
        no_temporaries(small, "no space")
        filler.unlink()
        done = run("fmt", "-i", source)
        expect(done.returncode == 0 and source.read_text() != LOOSE, "fmt -i, with space again", done)
    finally:
        subprocess.run(["umount", small], check=False)


def standard_output(folder):
    source = folder / "copy.tk"
    source.write_text(COPY)
    for command in (["fmt", source], ["build", source, "--target", "cpu", "--emit", "tk", "-o", "-"], ["doctor"],
                    ["run", source, "--target", "cpu", "--dim", "N=3"], ["--version"], ["build", "--help"],
                    ["build", source, "--target", "cpu", "--explain"],
                    ["build", source, "--target", "cpu", "--emit", "tk", "-o", "/dev/full"]):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([TKC, *map(str, command)], stdout=full, stderr=subprocess.PIPE, timeout=120, check=False)
        if command[-1] == "--explain" and not done.stderr:
            continue  # nothing to say
        expect(done.returncode == 3 and b"No space left on device" in done.stderr, f"{command[0]} to /dev/full", done)
    done = subprocess.run(["/bin/sh", "-c", '"$0" fmt "$1" >&-', TKC, source], stderr=subprocess.PIPE, timeout=120,
                          check=False)
    expect(done.returncode == 3 and b"Bad file descriptor" in done.stderr, "standard output is closed", done)
    done = run("build", source, "--target", "cpu", "--emit", "tk", "-o", "/dev/stdout")
    expect(done.returncode == 0 and b"tk.kernel" in done.stdout, "-o /dev/stdout", done)


def links_and_modes(folder):
    real, link = folder / "real.tk", folder / "link.tk"
    real.write_text(LOOSE)
    real.chmod(0o640)
    link.symlink_to("real.tk")
    owner = real.stat()
    done = run("fmt", "-i", link)
    expect(done.returncode == 0 and link.is_symlink() and real.read_text() != LOOSE, "fmt -i through a link", done)
    now = real.stat()
    expect(stat.S_IMODE(now.st_mode) == 0o640 and (now.st_uid, now.st_gid) == (owner.st_uid, owner.st_gid),
           "fmt -i keeps mode and owner")
    dangling = folder / "dangling"
    dangling.symlink_to("made")
    done = run("build", real, "--target", "cpu", "--emit", "tk", "-o", dangling)
    expect(done.returncode == 0 and dangling.is_symlink() and (folder / "made").stat().st_size > 0,
           "-o through a link that names nothing yet", done)
    circle = folder / "circle"
    circle.symlink_to("circle")
    done = run("build", real, "--target", "cpu", "--emit", "tk", "-o", circle)
    expect(done.returncode == 3 and b"symbolic links" in done.stderr, "-o to a circle of links", done)
    done = run("build", real, "--target", "cpu", "--emit", "tk", "-o", folder / "none" / "out")
    expect(done.returncode == 3 and b"No such file or directory" in done.stderr, "-o in no folder", done)
    done = run("build", real, "--target", "cpu", "--emit", "tk", "-o", folder)
    expect(done.returncode == 3 and b"Is a directory" in done.stderr, "-o to a folder", done)


def unwritable_folder(folder):
    """As another user, where this process may become one: root may write anywhere."""
    locked = folder / "locked"
    locked.mkdir()
    source = locked / "loose.tk"
    source.write_text(LOOSE)
    options = {}
    if os.geteuid() == 0:
        options = {"user": 65534, "group": 65534, "extra_groups": []}
        folder.chmod(0o755)
        source.chmod(0o666)
        probe = subprocess.run([TKC, "--version"], capture_output=True, check=False, **options)
        if probe.returncode != 0:
            print("not run: a folder that cannot be written (another user cannot run tkc)")
            return
    locked.chmod(0o555)
    done = run("fmt", "-i", source, **options)
    locked.chmod(0o755)
    expect(done.returncode == 3 and b"Permission denied" in done.stderr, "fmt -i in a folder that is locked", done)
    expect(source.read_text() == LOOSE, "fmt -i in a folder that is locked: the source is not what it was")
    source.chmod(0o444)
    if options:
        shutil.chown(locked, 65534, 65534)
    done = run("fmt", "-i", source, **options)
    expect(done.returncode == 3 and source.read_text() == LOOSE, "fmt -i of a file that is read-only", done)


def names(folder):
    """A name of any bytes works everywhere, or is refused with status 1."""
    hardest = (b'quo"te.tk', b"new\nline.tk", b"\xff\xfe.tk")
    for name in (b'quo"te.tk', b"apo'strophe.tk", b"new\nline.tk", b"back\\slash.tk", b"\xff\xfe.tk", b"per%cent $x.tk",
                 "größe.tk".encode(), b"* comment.tk", b"tab\t.tk", b"-dash.tk"):
        path = os.path.join(os.fsencode(folder), name)
        with open(path, "w") as file:
            file.write(COPY.replace("x[i]", "exp(x[i])"))
        commands = [["run", path, "--target", "cpu", "--dim", "N=3", "--check"],
                    ["build", path, "--target", "sm_90a", "--emit", "cuda", "-o", path + b".cu", "--depfile", path + b".d"],
                    ["fmt", path], ["fmt", "-i", path]]
        if name in hardest:
            commands.append(["run", path, "--target", "emu", "--dim", "N=3", "--check", "--json"])
            if nvrtc():
                commands.append(["build", path, "--emit", "bundle", "--target", "sm_90a", "-o", path + b"b", "--cpp", path])
        for command in commands:
            done = run(*command)
            expect(done.returncode == 0 or (done.returncode == 1 and b"\n" in name and b"line break" in done.stderr),
                   f"{command[0]} {name}", done)
        with open(path, "w") as file:
            file.write("kernel")
        done = run("run", path, "--json", "--target", "cpu")
        expect(done.returncode == 1, f"an error in {name}", done)
        try:
            json.loads(done.stderr.decode())
        except ValueError as error:
            wrong.append(f"an error in {name}: {error}: {done.stderr}")


def nvrtc():
    return any(line.startswith(b"nvrtc") and b"none" not in line for line in run("doctor").stdout.splitlines())


def endless_inputs(folder):
    source = folder / "endless.tk"
    source.write_text(COPY)
    limit = 8 << 30  # of address space; tkc takes a tenth of that

    def bounded():
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    command = ["run", source, "--target", "cpu", "--in"]
    done = run(*command, "x=/dev/zero", preexec_fn=bounded)
    expect(done.returncode == 1 and b"not a .npy file" in done.stderr, "--in x=/dev/zero", done)
    header = str({"descr": "<f4", "fortran_order": False, "shape": (1 << 50,)}).encode().ljust(117) + b"\n"
    start = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    process = subprocess.Popen([TKC, *map(str, command), f"x={pipe}"], stderr=subprocess.PIPE, preexec_fn=bounded)
    try:
        with open(pipe, "wb") as file:
            file.write(start)
            for _ in range(1 << 12):
                file.write(b"\0" * (1 << 20))
    except BrokenPipeError:
        pass
    _, error = process.communicate(timeout=60)
    expect(process.returncode == 3 and b"memory" in error, f"a tensor of 2^50 elements in a pipe: {error}")
    done = run("run", source, "--target", "cpu", "--dim", f"N={1 << 50}", preexec_fn=bounded)
    expect(done.returncode == 3 and b"memory" in done.stderr, "a dimension of 2^50", done)
    for path in (folder / "zero.tkb", folder / "zero.tk"):
        path.symlink_to("/dev/zero")
        done = run("inspect", path, preexec_fn=bounded)
        expect(done.returncode == 1, f"inspect {path.name}", done)
    importer = folder / "importer.tk"
    for what in ("/etc/passwd", "/dev/zero", "endless.txt"):
        importer.write_text(f'import "{what}"\n{COPY}')
        done = run("run", importer, "--target", "cpu", "--dim", "N=3")
        expect(done.returncode == 1 and b"is not a .tk file" in done.stderr and b"root" not in done.stderr,
               f"import {what}", done)


def large_programs(folder):
    """The reference's memory follows what is asked for: 40 tensors of 2^24 elements would take 10 GiB as arrays."""
    source = folder / "large.tk"
    lets = "".join(f"  let a{k}[i] = x[i] + {f'a{k - 1}[i]' if k else '1'}\n" for k in range(40))
    source.write_text(f"kernel large(x: f32[N]) -> (y: f32[N]) {{\n{lets}  y[i] = a39[i]\n}}\n")
    done = run("run", source, "--target", "cpu", "--dim", f"N={1 << 24}", "--check", "--check-elements", "100",
               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30)))
    expect(done.returncode == 0, "--check of a large program", done)


def settings(folder):
    """Directories that cannot be made, and a switch with a typing error: doctor says so, a run warns once."""
    source = folder / "settings.tk"
    source.write_text(COPY + COPY.replace("copy", "other"))
    file = folder / "file"
    file.write_text("no folder")
    run_it = ["run", source, "--kernel", "copy", "--target", "emu", "--dim", "N=3"]
    for variable, value, reason in (("TK_CACHE_DIR", str(file), b"Not a directory"),
                                    ("TK_CACHE_DIR", "/proc/tk", b"/proc/tk"),
                                    ("TK_CACHE_DIR", str(file / "below"), b"Not a directory"),
                                    ("TK_CACHE", "offf", b"expected 'on' or 'off'"),
                                    ("TK_DUMP", str(file / "below"), b"Not a directory")):
        environment = os.environ | {"TK_CACHE": "on", "TK_CACHE_DIR": str(folder / "cache"), variable: value}
        done = run(*run_it, env=environment)
        expect(done.returncode == 0 and done.stderr.count(b"tk: warning: ") == 1 and reason in done.stderr,
               f"{variable}={value}", done)
        done = run("doctor", env=environment)
        expect(done.returncode == 0 and reason in done.stdout and value.encode() in done.stdout,
               f"doctor, {variable}={value}: {done.stdout}")
    environment = os.environ | {"TK_CACHE": "on", "TK_CACHE_DIR": str(folder / "cache"), "TK_DUMP": str(folder / "dump")}
    done = run(*run_it, env=environment)
    expect(done.returncode == 0 and not done.stderr and os.listdir(folder / "dump"), "settings without a fault", done)


def main():
    for test in (files_on_a_full_disk, files_on_a_small_file_system, standard_output, links_and_modes, unwritable_folder,
                 names, endless_inputs, large_programs, settings):
        with tempfile.TemporaryDirectory() as name:
            test(pathlib.Path(name))
    print("\n".join(wrong) or "files are read and written as they should")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
