#include "tk/npy.h"

#include "runtime/Environment.h"
#include "runtime/Files.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

namespace tk {
namespace {

constexpr std::string_view npy_magic("\x93NUMPY", 6);

Error bad(const std::string &what) {
  return Error(ErrorCode::bad_file, "not a .npy file: " + what);
}

/// How the elements lie in the file.
struct Stored {
  DType dtype; ///< what they become
  size_t size; ///< bytes in the file
  bool widen;  ///< an unsigned type that dtype is the next wider signed one of
};

std::optional<Stored> stored_type(std::string_view descr) {
  struct Row {
    std::string_view code;
    Stored stored;
  };
  constexpr Row rows[] = {{"f8", {DType::f64, 8, false}},     {"f4", {DType::f32, 4, false}},
                          {"f2", {DType::f16, 2, false}},     {"i8", {DType::i64, 8, false}},
                          {"i4", {DType::i32, 4, false}},     {"i2", {DType::i16, 2, false}},
                          {"i1", {DType::i8, 1, false}},      {"u1", {DType::u8, 1, false}},
                          {"b1", {DType::boolean, 1, false}}, {"u2", {DType::i32, 2, true}},
                          {"u4", {DType::i64, 4, true}}};
  if (descr.size() != 3)
    return std::nullopt;
  for (const Row &row : rows)
    if (descr.substr(1) == row.code &&
        (descr[0] == '<' || (row.stored.size == 1 && descr[0] == '|')))
      return row.stored;
  return std::nullopt;
}

std::string_view npy_code(DType dtype) {
  switch (dtype) {
  case DType::f64:
    return "<f8";
  case DType::f16:
    return "<f2";
  case DType::i64:
    return "<i8";
  case DType::i32:
    return "<i4";
  case DType::i16:
    return "<i2";
  case DType::i8:
    return "|i1";
  case DType::u8:
    return "|u1";
  case DType::boolean:
    return "|b1";
  default:
    return "<f4";
  }
}

/// The header, a Python dictionary literal with exactly three keys.
class Header {
public:
  explicit Header(std::string_view text) : m_rest(text) {}

  Status parse() {
    if (!eat('{'))
      return bad("expected '{' in the header");
    while (!eat('}')) {
      std::string key;
      if (!quoted(key) || !eat(':'))
        return bad("damaged header");
      bool ok = key == "descr"           ? quoted(descr)
                : key == "fortran_order" ? boolean(fortran)
                : key == "shape"         ? tuple(shape)
                                         : false;
      if (!ok)
        return bad("unsupported '" + key + "' in the header");
      seen += 1;
      eat(',');
    }
    return seen == 3 ? Status() : bad("expected descr, fortran_order and shape in the header");
  }

  std::string descr;
  bool fortran = false;
  Extents shape;
  int seen = 0;

private:
  void skip() {
    while (!m_rest.empty() && (m_rest[0] == ' ' || m_rest[0] == '\n'))
      m_rest.remove_prefix(1);
  }
  bool eat(char c) {
    skip();
    if (m_rest.empty() || m_rest[0] != c)
      return false;
    m_rest.remove_prefix(1);
    return true;
  }
  bool quoted(std::string &text) {
    skip();
    if (m_rest.empty() || (m_rest[0] != '\'' && m_rest[0] != '"'))
      return false;
    size_t end = m_rest.find(m_rest[0], 1);
    if (end == std::string_view::npos)
      return false;
    text = m_rest.substr(1, end - 1);
    m_rest.remove_prefix(end + 1);
    return true;
  }
  bool boolean(bool &value) {
    skip();
    value = m_rest.starts_with("True");
    if (!value && !m_rest.starts_with("False"))
      return false;
    m_rest.remove_prefix(value ? 4 : 5);
    return true;
  }
  bool tuple(Extents &values) {
    if (!eat('('))
      return false;
    while (!eat(')')) {
      skip();
      int64_t value = 0;
      auto [end, error] = std::from_chars(m_rest.data(), m_rest.data() + m_rest.size(), value);
      if (error != std::errc() || value < 0 || values.size() == max_rank)
        return false;
      m_rest.remove_prefix(static_cast<size_t>(end - m_rest.data()));
      values.push_back(value);
      eat(',');
    }
    return true;
  }
  std::string_view m_rest;
};

/// Reads element number `index` of the file into row-major place.
void copy_element(const Stored &stored, const char *from, std::byte *to) {
  if (!stored.widen) {
    std::memcpy(to, from, stored.size);
    return;
  }
  uint64_t value = 0;
  std::memcpy(&value, from, stored.size);
  std::memcpy(to, &value, size_of(stored.dtype));
}

void copy_fortran(const Stored &stored, const char *from, HostTensor &tensor, int64_t count) {
  size_t size = size_of(tensor.dtype);
  std::array<int64_t, max_rank> index{};
  Extents strides = row_major_strides(tensor.shape);
  for (int64_t i = 0; i < count; ++i, from += stored.size) {
    int64_t offset = 0;
    for (unsigned axis = 0; axis < tensor.shape.size(); ++axis)
      offset += index[axis] * strides[axis];
    copy_element(stored, from, tensor.bytes.data() + static_cast<size_t>(offset) * size);
    for (unsigned axis = 0; axis < tensor.shape.size(); ++axis) {
      if (++index[axis] < tensor.shape[axis])
        break;
      index[axis] = 0;
    }
  }
}

Expected<std::string_view> header_text(std::string_view &bytes) {
  if (bytes.size() < 10 || !bytes.starts_with(npy_magic))
    return bad("expected the magic bytes \\x93NUMPY");
  auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(bytes[i])); };
  size_t version = byte(6), start = version == 1 ? 10 : 12;
  if (version < 1 || version > 3 || bytes.size() < start)
    return bad("unknown version " + std::to_string(version));
  size_t size = byte(8) | byte(9) << 8;
  if (version > 1)
    size |= byte(10) << 16 | byte(11) << 24;
  if (size > bytes.size() - start)
    return bad("truncated header");
  std::string_view text = bytes.substr(start, size);
  bytes.remove_prefix(start + size);
  return text;
}

/// Bytes behind the header that a file has, by its header; with a bound on what a machine can hold.
Expected<uint64_t> bytes_of_elements(std::string_view header) {
  Header parsed(header);
  if (Status status = parsed.parse(); !status)
    return std::move(status.error());
  std::optional<Stored> stored = stored_type(parsed.descr);
  Expected<int64_t> count = element_count(parsed.shape);
  if (!count)
    return std::move(count.error());
  const uint64_t size = stored ? stored->size : 1;
  if (static_cast<uint64_t>(*count) > detail::memory_bytes() / size)
    return Error(ErrorCode::out_of_memory,
                 "its " + std::to_string(*count) + " elements are more than the memory holds");
  return static_cast<uint64_t>(*count) * size;
}

/// Appends up to `count` bytes of a file, in steps, so that memory follows what there is.
bool append_bytes(std::FILE *file, uint64_t count, std::string &bytes) {
  constexpr uint64_t step = uint64_t{1} << 20;
  while (count > 0) {
    const size_t before = bytes.size(), wanted = static_cast<size_t>(std::min(count, step));
    bytes.resize(before + wanted);
    const size_t got = std::fread(bytes.data() + before, 1, wanted, file);
    bytes.resize(before + got);
    count -= got;
    if (got < wanted)
      return !std::ferror(file);
  }
  return true;
}

/// A file's bytes, but no more than its header announces and one: a device or a pipe may have no
/// end.
Expected<std::string> read_bounded(std::FILE *file) {
  std::string bytes;
  auto failed = [] { return Error(ErrorCode::io, std::strerror(errno)); };
  auto byte = [&](size_t i) { return uint64_t{static_cast<uint8_t>(bytes[i])}; };
  if (!append_bytes(file, 10, bytes))
    return failed();
  if (!bytes.starts_with(npy_magic) || bytes.size() < 10)
    return bytes;
  uint64_t header = byte(8) | byte(9) << 8;
  if (byte(6) != 1) {
    if (!append_bytes(file, 2, bytes))
      return failed();
    if (bytes.size() < 12)
      return bytes;
    header |= byte(10) << 16 | byte(11) << 24;
  }
  // Later versions allow 4 GiB; no header comes near.
  constexpr uint64_t longest_header = uint64_t{1} << 20;
  if (header > longest_header)
    return bad("a header of " + std::to_string(header) + " bytes");
  if (!append_bytes(file, header, bytes))
    return failed();
  std::string_view rest = bytes;
  Expected<std::string_view> text = header_text(rest);
  if (!text)
    return std::move(text.error());
  Expected<uint64_t> elements = bytes_of_elements(*text);
  if (!elements)
    return std::move(elements.error());
  if (!append_bytes(file, *elements + 1, bytes))
    return failed();
  return bytes;
}

struct CloseFile {
  void operator()(std::FILE *file) const { std::fclose(file); }
};
using FileHandle = std::unique_ptr<std::FILE, CloseFile>;

} // namespace

HostTensor HostTensor::zeros(DType dtype, const Extents &shape) {
  HostTensor tensor;
  tensor.dtype = dtype;
  tensor.shape = shape;
  int64_t size = byte_count(dtype, shape).value();
  if (static_cast<uint64_t>(size) > detail::memory_bytes())
    throw Error(ErrorCode::out_of_memory,
                "a tensor of " + std::to_string(size) + " bytes is more than the memory holds");
  try {
    tensor.bytes.resize(static_cast<size_t>(size));
  } catch (const std::exception &) {
    throw Error(ErrorCode::out_of_memory,
                "cannot allocate " + std::to_string(size) + " bytes for a tensor");
  }
  return tensor;
}

HostTensor HostTensor::converted(DType to) const {
  HostTensor result = zeros(to, shape);
  convert(to, result.bytes.data(), dtype, bytes.data(), bytes.size() / size_of(dtype));
  return result;
}

Expected<HostTensor> parse_npy(std::string_view bytes) {
  Expected<std::string_view> text = header_text(bytes);
  if (!text)
    return std::move(text.error());
  Header header(*text);
  if (Status status = header.parse(); !status)
    return std::move(status.error());
  std::optional<Stored> stored = stored_type(header.descr);
  if (!stored)
    return Error(ErrorCode::bad_file, "unsupported .npy element type '" + header.descr +
                                          "': expected little-endian f8 f4 f2 i8 i4 i2 i1 u1 b1");
  Expected<int64_t> count = element_count(header.shape);
  if (!count)
    return std::move(count.error());
  // Compared by division: the product could overflow.
  if (bytes.size() / stored->size != static_cast<uint64_t>(*count) ||
      bytes.size() % stored->size != 0)
    return bad("expected " + std::to_string(*count) + " elements of " +
               std::to_string(stored->size) + " bytes, got " + std::to_string(bytes.size()) +
               " bytes");
  try {
    HostTensor tensor = HostTensor::zeros(stored->dtype, header.shape);
    if (header.fortran && header.shape.size() > 1)
      copy_fortran(*stored, bytes.data(), tensor, *count);
    else if (stored->widen)
      for (int64_t i = 0; i < *count; ++i)
        copy_element(*stored, bytes.data() + static_cast<size_t>(i) * stored->size,
                     tensor.bytes.data() + static_cast<size_t>(i) * size_of(stored->dtype));
    else if (!bytes.empty())
      std::memcpy(tensor.bytes.data(), bytes.data(), bytes.size());
    if (tensor.dtype == DType::boolean)
      for (std::byte &value : tensor.bytes)
        value = std::byte{value != std::byte{0}};
    return tensor;
  } catch (const Error &error) {
    return error;
  }
}

std::string format_npy(const HostTensor &tensor) {
  if (is_float(tensor.dtype) && tensor.dtype != DType::f64 && tensor.dtype != DType::f32 &&
      tensor.dtype != DType::f16)
    return format_npy(tensor.converted(DType::f32));
  std::string header =
      "{'descr': '" + std::string(npy_code(tensor.dtype)) + "', 'fortran_order': False, 'shape': (";
  for (int64_t extent : tensor.shape)
    header += std::to_string(extent) + ",";
  header += "), }";
  header.append(63 - (npy_magic.size() + 4 + header.size()) % 64, ' ');
  header += '\n';
  std::string bytes(npy_magic);
  bytes +=
      {'\x01', '\0', static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)};
  bytes += header;
  bytes.append(reinterpret_cast<const char *>(tensor.bytes.data()), tensor.bytes.size());
  return bytes;
}

Expected<HostTensor> read_npy(const std::string &path) {
  FileHandle file(std::fopen(path.c_str(), "rb"));
  if (!file)
    return Error(ErrorCode::io, "cannot read '" + path + "': " + std::strerror(errno));
  Expected<std::string> bytes = read_bounded(file.get());
  if (!bytes && bytes.error().code() == ErrorCode::io)
    return Error(ErrorCode::io, "cannot read '" + path + "': " + bytes.error().message());
  if (!bytes)
    return Error(bytes.error().code(), "'" + path + "': " + bytes.error().message());
  Expected<HostTensor> tensor = parse_npy(*bytes);
  if (!tensor)
    return Error(tensor.error().code(), "'" + path + "': " + tensor.error().message());
  return tensor;
}

Status write_npy(const std::string &path, const HostTensor &tensor) {
  return detail::write_file(path, format_npy(tensor));
}

} // namespace tk
