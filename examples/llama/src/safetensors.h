// Files in the safetensors format: 8 bytes with the length of a JSON head, the head, raw data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tk/tensor.h>

namespace llama {

/// A file that is mapped into memory, read only.
class MappedFile {
public:
  explicit MappedFile(const std::filesystem::path &path);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;
  std::string_view bytes() const { return {m_data, m_size}; }

private:
  const char *m_data = nullptr;
  size_t m_size = 0;
};

/// The tensors of one safetensors file. The whole head is checked before a tensor is given out.
class SafetensorsFile {
public:
  /// Throws `tk::Error`: `io` if the file cannot be read, `bad_file` if it is not what it claims.
  explicit SafetensorsFile(const std::filesystem::path &path);

  struct Tensor {
    tk::DType dtype = tk::DType::f32;
    std::vector<int64_t> shape;
    std::string_view bytes;
  };
  const std::map<std::string, Tensor, std::less<>> &tensors() const { return m_tensors; }

private:
  void readHead(std::string_view head, std::string_view data);
  [[noreturn]] void fail(const std::string &what) const;

  std::string m_name;
  MappedFile m_file;
  std::map<std::string, Tensor, std::less<>> m_tensors;
};

/// The tensors of all safetensors files of a folder.
class Checkpoint {
public:
  explicit Checkpoint(const std::filesystem::path &folder);

  /// The elements of a tensor as bf16. Throws `bad_file` if it is missing, or has another shape.
  std::vector<uint16_t> bf16(std::string_view name, const std::vector<int64_t> &shape) const;
  bool contains(std::string_view name) const;

private:
  const SafetensorsFile::Tensor *find(std::string_view name) const;
  std::filesystem::path m_folder;
  std::vector<std::unique_ptr<SafetensorsFile>> m_files;
};

} // namespace llama
