"""The package's stubs name what its code has, with the same parameters and defaults."""
import ast
import inspect
import pathlib
import unittest

import tk


def written(function):
    """The parameters of a stub: (name, kind, default as text or None)."""
    args = function.args
    positional = args.posonlyargs + args.args
    defaults = [None] * (len(positional) - len(args.defaults)) + list(args.defaults)
    found = [(arg.arg, "positional", default) for arg, default in zip(positional, defaults)]
    if args.vararg:
        found.append((args.vararg.arg, "var", None))
    found += [(arg.arg, "keyword", default) for arg, default in zip(args.kwonlyargs, args.kw_defaults)]
    if args.kwarg:
        found.append((args.kwarg.arg, "named", None))
    return [(name, kind, default and repr(ast.literal_eval(default))) for name, kind, default in found]


def actual(function):
    kinds = {inspect.Parameter.POSITIONAL_OR_KEYWORD: "positional", inspect.Parameter.VAR_POSITIONAL: "var",
             inspect.Parameter.KEYWORD_ONLY: "keyword", inspect.Parameter.VAR_KEYWORD: "named"}
    return [(p.name, kinds[p.kind], None if p.default is p.empty else repr(p.default))
            for p in inspect.signature(function).parameters.values()]


class StubsTest(unittest.TestCase):
    def setUp(self):
        package = pathlib.Path(tk.__file__).parent
        self.assertTrue((package / "py.typed").exists())
        self.tree = ast.parse((package / "__init__.pyi").read_text())

    def check_function(self, where, stub, function):
        self.assertEqual(written(stub), actual(function), f"{where}.{stub.name}")

    def check_class(self, stub, kind):
        named = set()
        for item in stub.body:
            if not isinstance(item, ast.FunctionDef):
                continue
            named.add(item.name)
            value = inspect.getattr_static(kind, item.name)
            if isinstance(value, property):
                self.assertEqual([d.id for d in item.decorator_list], ["property"], item.name)
            elif inspect.isfunction(value):
                self.check_function(stub.name, item, value)
        public = {name for name in vars(kind) if not name.startswith("_")}
        self.assertEqual(public - named, set(), f"{stub.name}: missing in the stub")

    def test_stubs(self):
        functions = {item.name: item for item in self.tree.body if isinstance(item, ast.FunctionDef)}
        classes = {item.name: item for item in self.tree.body if isinstance(item, ast.ClassDef)}
        self.assertEqual(set(functions) | set(classes), set(tk.__all__))
        for name, stub in functions.items():
            self.check_function("tk", stub, getattr(tk, name))
        for name, stub in classes.items():
            self.check_class(stub, getattr(tk, name))


if __name__ == "__main__":
    unittest.main()
