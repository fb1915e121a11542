//===- Interpreter.cpp - the reference's interface ------------------------===//
#include "compiler/interp/Interpreter.h"

#include "compiler/interp/Evaluation.h"

#include "llvm/ADT/STLExtras.h"

#include <cstring>

namespace tk::interp {

/// Up to this many elements a tensor is held as cells.
static constexpr int64_t mostCells = int64_t{1} << 22;

/// The number that an element of a type holds.
static Cell cellOf(DType dtype, const void *element) {
  Cell cell{};
  if (is_float(dtype))
    cell.f = load_as_f64(dtype, element);
  else if (dtype == DType::i64)
    std::memcpy(&cell.i, element, sizeof(int64_t));
  else if (dtype == DType::u8) // held as the bits of an i8
    cell.i = *static_cast<const int8_t *>(element);
  else
    cell.i = static_cast<int64_t>(load_as_f64(dtype, element));
  return cell;
}

CellTensor::CellTensor(const TensorView &view)
    : shape(view.shape.begin(), view.shape.end()), dtype(view.dtype) {
  const int64_t count = element_count(view.shape).value();
  const size_t size = size_of(view.dtype);
  const bool asCells = count <= mostCells;
  asCells ? cells.resize(count) : bytes.resize(count * size);
  std::vector<int64_t> index(view.rank(), 0);
  for (int64_t n = 0; n < count; ++n) {
    int64_t offset = 0;
    for (unsigned axis = 0; axis < view.rank(); ++axis)
      offset += index[axis] * view.strides[axis];
    const char *element =
        static_cast<const char *>(view.data) + offset * static_cast<int64_t>(size);
    if (asCells)
      cells[n] = cellOf(dtype, element);
    else
      std::memcpy(bytes.data() + n * size, element, size);
    for (unsigned axis = view.rank(); axis-- > 0;) {
      if (++index[axis] < view.shape[axis])
        break;
      index[axis] = 0;
    }
  }
}

Cell CellTensor::convert(int64_t position) const {
  return cellOf(dtype, bytes.data() + position * size_of(dtype));
}

Reference::Reference() = default;
Reference::~Reference() = default;
Reference::Reference(Reference &&) noexcept = default;

Expected<Reference> Reference::create(KernelOp kernel, Mode mode) {
  auto program = detail::translate(kernel, mode);
  if (!program)
    return program.error();
  Reference reference;
  reference.m_program = std::move(*program);
  reference.m_evaluation = std::make_unique<detail::Evaluation>(*reference.m_program);
  return reference;
}

Status Reference::bind(const std::vector<int64_t> &dims, const std::vector<TensorView> &tensors,
                       const std::vector<Scalar> &scalars) {
  m_known.clear();
  return m_evaluation->bind(dims, tensors, scalars);
}

unsigned Reference::numResults() const { return m_program->results.size(); }

const std::vector<int64_t> &Reference::resultShape(unsigned result) const {
  return m_evaluation->shape(m_program->results[result]);
}

bool Reference::resultIsFloat(unsigned result) const {
  return m_program->tensors[m_program->results[result]].isFloat;
}

void Reference::redraw(unsigned draw) {
  m_known.clear();
  m_evaluation->redraw(draw);
}

void Reference::takeAbsentTerms(bool takes) {
  m_known.clear();
  m_evaluation->takeAbsentTerms(takes);
}

void Reference::beginCounts() { m_evaluation->beginCounts(); }

double Reference::countedOperations() const { return m_evaluation->getCounts()->operations; }

std::vector<int64_t> Reference::countedReads() const {
  std::vector<int64_t> reads;
  for (int tensor : m_program->paramTensors)
    if (tensor >= 0)
      reads.push_back(llvm::count(m_evaluation->getCounts()->isRead[tensor], true));
  return reads;
}

Cell Reference::element(unsigned result, int64_t position) {
  // Whole results are compared once, and are too many to keep.
  constexpr size_t mostKept = 1 << 16;
  if (auto known = m_known.find({result, position}); known != m_known.end())
    return known->second;
  const Cell cell = m_evaluation->element(m_program->results[result], position);
  if (m_known.size() < mostKept)
    m_known.emplace(std::pair(result, position), cell);
  return cell;
}

} // namespace tk::interp
