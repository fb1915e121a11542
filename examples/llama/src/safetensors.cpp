#include "safetensors.h"

#include <algorithm>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tk/dtype.h>
#include <tk/error.h>

#include "json.h"

namespace llama {

MappedFile::MappedFile(const std::filesystem::path &path) {
  auto fail = [&] {
    throw tk::Error(tk::ErrorCode::io, path.string() + ": " + std::strerror(errno));
  };
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    fail();
  struct stat status{};
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(file);
    throw tk::Error(tk::ErrorCode::io, path.string() + ": expected a file");
  }
  m_size = static_cast<size_t>(status.st_size);
  void *data = m_size ? mmap(nullptr, m_size, PROT_READ, MAP_PRIVATE, file, 0) : nullptr;
  close(file);
  if (data == MAP_FAILED)
    fail();
  m_data = static_cast<const char *>(data);
}

MappedFile::~MappedFile() {
  if (m_data)
    munmap(const_cast<char *>(m_data), m_size);
}

/// The types of the format that a weight may have. Null for others.
static const tk::DType *dtypeOf(std::string_view name) {
  static const std::map<std::string_view, tk::DType> types = {
      {"F64", tk::DType::f64},      {"F32", tk::DType::f32},        {"F16", tk::DType::f16},
      {"BF16", tk::DType::bf16},    {"I64", tk::DType::i64},        {"I32", tk::DType::i32},
      {"I16", tk::DType::i16},      {"I8", tk::DType::i8},          {"U8", tk::DType::u8},
      {"BOOL", tk::DType::boolean}, {"F8_E4M3", tk::DType::f8e4m3}, {"F8_E5M2", tk::DType::f8e5m2}};
  auto found = types.find(name);
  return found == types.end() ? nullptr : &found->second;
}

void SafetensorsFile::fail(const std::string &what) const {
  throw tk::Error(tk::ErrorCode::bad_file, m_name + ": " + what);
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path &path)
    : m_name(path.string()), m_file(path) {
  std::string_view bytes = m_file.bytes();
  if (bytes.size() < 8)
    fail("expected at least 8 bytes, got " + std::to_string(bytes.size()));
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | static_cast<unsigned char>(bytes[i]);
  if (length > bytes.size() - 8)
    fail("the head has " + std::to_string(length) + " bytes, the file only " +
         std::to_string(bytes.size() - 8) + " after the length");
  readHead(bytes.substr(8, length), bytes.substr(8 + length));
}

void SafetensorsFile::readHead(std::string_view head, std::string_view data) {
  Json json = Json::parse(head, m_name);
  if (!json.object())
    fail("expected an object of tensors as the head");
  for (const auto &[name, entry] : *json.object()) {
    if (name == "__metadata__")
      continue;
    const Json *type = entry.find("dtype"), *extents = entry.find("shape"),
               *offsets = entry.find("data_offsets");
    if (!type || !type->string() || !extents || !extents->array() || !offsets ||
        !offsets->array() || offsets->array()->size() != 2)
      fail("tensor '" + name + "': expected `dtype`, `shape` and two `data_offsets`");
    const tk::DType *dtype = dtypeOf(*type->string());
    if (!dtype)
      fail("tensor '" + name + "': unknown dtype '" + *type->string() + "'");
    Tensor tensor;
    tensor.dtype = *dtype;
    uint64_t size = tk::size_of(*dtype);
    for (const Json &extent : *extents->array()) {
      std::optional<int64_t> value = extent.integer();
      if (!value || *value < 0 ||
          __builtin_mul_overflow(size, static_cast<uint64_t>(*value), &size))
        fail("tensor '" + name + "': a bad extent in `shape`");
      tensor.shape.push_back(*value);
    }
    std::optional<int64_t> from = (*offsets->array())[0].integer(),
                           to = (*offsets->array())[1].integer();
    if (!from || !to || *from < 0 || *to < *from || static_cast<uint64_t>(*to) > data.size())
      fail("tensor '" + name + "': `data_offsets` are outside of the " +
           std::to_string(data.size()) + " bytes of data");
    if (static_cast<uint64_t>(*to - *from) != size)
      fail("tensor '" + name + "': its shape has " + std::to_string(size) +
           " bytes, its `data_offsets` have " + std::to_string(*to - *from));
    tensor.bytes = data.substr(*from, size);
    m_tensors.emplace(name, std::move(tensor));
  }
}

Checkpoint::Checkpoint(const std::filesystem::path &folder) : m_folder(folder) {
  std::error_code error;
  std::vector<std::filesystem::path> paths;
  for (const auto &entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".safetensors")
      paths.push_back(entry.path());
  if (error)
    throw tk::Error(tk::ErrorCode::io, folder.string() + ": " + error.message());
  if (paths.empty())
    throw tk::Error(tk::ErrorCode::io, folder.string() + ": there is no file *.safetensors");
  std::sort(paths.begin(), paths.end());
  for (const auto &path : paths)
    m_files.push_back(std::make_unique<SafetensorsFile>(path));
}

const SafetensorsFile::Tensor *Checkpoint::find(std::string_view name) const {
  for (const auto &file : m_files)
    if (auto found = file->tensors().find(name); found != file->tensors().end())
      return &found->second;
  return nullptr;
}

bool Checkpoint::contains(std::string_view name) const { return find(name) != nullptr; }

static std::string str(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (int64_t extent : shape)
    text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + "]";
}

std::vector<uint16_t> Checkpoint::bf16(std::string_view name,
                                       const std::vector<int64_t> &shape) const {
  const SafetensorsFile::Tensor *tensor = find(name);
  auto fail = [&](const std::string &what) {
    throw tk::Error(tk::ErrorCode::bad_file,
                    m_folder.string() + ": tensor '" + std::string(name) + "' " + what);
  };
  if (!tensor)
    fail("is missing");
  if (tensor->shape != shape)
    fail("has the shape " + str(tensor->shape) + ", expected " + str(shape) + " by config.json");
  if (!tk::is_float(tensor->dtype))
    fail("has the type " + std::string(tk::name(tensor->dtype)) + ", expected floats");
  std::vector<uint16_t> values(tensor->bytes.size() / tk::size_of(tensor->dtype));
  if (tensor->dtype == tk::DType::bf16) {
    std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
    return values;
  }
  // The data of the file may lie at any address, so that pieces are copied before they are read.
  constexpr size_t piece = 4096;
  alignas(8) char elements[piece * 8];
  size_t size = tk::size_of(tensor->dtype);
  for (size_t i = 0; i < values.size(); i += piece) {
    size_t count = std::min(piece, values.size() - i);
    std::memcpy(elements, tensor->bytes.data() + i * size, count * size);
    tk::convert(tk::DType::bf16, &values[i], tensor->dtype, elements, count);
  }
  return values;
}

} // namespace llama
