// Compiling ahead of launches: which variants sizes select, and compiling these in parallel.
#include "runtime/Interrupt.h"
#include "runtime/Kernel.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <thread>

namespace tk::detail {
namespace {

/// Up to so many combinations of sizes are all looked at. Beyond, a few of each key stand for it.
constexpr size_t max_combinations = size_t{1} << 16;
/// How long the caller waits before it looks whether it was interrupted.
constexpr std::chrono::milliseconds patience{20};

/// Runs `work(i)` for i below `count` on threads of its own; the caller waits, and hears of each
/// that is done. The first error ends the work once all that has begun is done.
class Crew {
public:
  Crew(size_t count, std::function<void(size_t)> work) : m_count(count), m_work(std::move(work)) {}

  void run(unsigned threads, const std::function<void(size_t)> &done) {
    InterruptScope interruptible;
    std::vector<std::thread> crew;
    try {
      while (crew.size() < std::min<size_t>(threads, m_count))
        crew.emplace_back([this] { take_all(); });
      await(done);
    } catch (...) {
      fail(std::current_exception());
    }
    for (std::thread &thread : crew)
      thread.join();
    if (m_error)
      std::rethrow_exception(m_error);
  }

private:
  void take_all() {
    for (;;) {
      size_t mine = 0;
      {
        std::lock_guard lock(m_mutex);
        if (m_error || m_next == m_count)
          return;
        mine = m_next++;
      }
      try {
        m_work(mine);
      } catch (...) {
        fail(std::current_exception());
      }
      std::lock_guard lock(m_mutex);
      ++m_done;
      m_changed.notify_all();
    }
  }

  void await(const std::function<void(size_t)> &done) {
    size_t told = 0;
    while (told < m_count) {
      size_t now = 0;
      {
        std::unique_lock lock(m_mutex);
        m_changed.wait_for(lock, patience, [&] { return m_done > told || m_error; });
        if (m_error)
          return;
        now = m_done;
      }
      stop_if_interrupted();
      while (told < now)
        done(++told);
    }
  }

  void fail(std::exception_ptr error) {
    std::lock_guard lock(m_mutex);
    if (!m_error)
      m_error = std::move(error);
    m_changed.notify_all();
  }

  const size_t m_count;
  const std::function<void(size_t)> m_work;
  std::mutex m_mutex;
  std::condition_variable m_changed;
  size_t m_next = 0, m_done = 0;
  std::exception_ptr m_error;
};

/// The first, the second, the middle and the last of sizes with one key, in their order.
std::vector<int64_t> representatives(std::span<const int64_t> sizes) {
  std::vector<int64_t> kept;
  const size_t last = sizes.size() - 1;
  for (size_t i : {size_t{0}, std::min<size_t>(1, last), last / 2, last})
    if (!std::count(kept.begin(), kept.end(), sizes[i]))
      kept.push_back(sizes[i]);
  return kept;
}

/// The same of a range, without going through its sizes.
std::vector<int64_t> representatives(const SizeRange &range, const SizeClass &of) {
  auto at_least = [&](int64_t size) {
    return range.first +
           (std::max(size - range.first, int64_t{0}) + range.step - 1) / range.step * range.step;
  };
  const int64_t first = at_least(of.first), middle = at_least(of.first + (of.last - of.first) / 2);
  const int64_t last = range.first + (of.last - range.first) / range.step * range.step;
  std::vector<int64_t> kept;
  for (int64_t size : {first, first + range.step, middle, last})
    if (size >= first && size <= last && !std::count(kept.begin(), kept.end(), size))
      kept.push_back(size);
  return kept;
}

/// All sizes that are asked for, or a few of each key.
std::vector<int64_t> sizes_of(const SizeSet &set, bool all) {
  const SizeRange *range = set.range();
  if (!range) {
    if (all)
      return *set.list();
    std::map<std::pair<uint32_t, int64_t>, std::vector<int64_t>> by_key;
    for (int64_t size : *set.list())
      by_key[{fact_for(size).divisor, fact_for(size).upper}].push_back(size);
    std::vector<int64_t> kept;
    for (const auto &entry : by_key)
      for (int64_t size : representatives(entry.second))
        kept.push_back(size);
    return kept;
  }
  std::vector<SizeClass> classes = size_classes(*range).value();
  std::vector<int64_t> sizes;
  if (all || classes.empty()) {
    for (int64_t size = range->first; size <= range->last; size += range->step)
      sizes.push_back(size);
    return sizes;
  }
  if (range->first == 0)
    sizes.push_back(0);
  for (const SizeClass &of : classes)
    for (int64_t size : representatives(*range, of))
      sizes.push_back(size);
  return sizes;
}

double count_of(const SizeSet &set) {
  const SizeRange *range = set.range();
  return range ? std::floor(static_cast<double>(range->last - range->first) /
                            static_cast<double>(range->step)) +
                     1
               : static_cast<double>(set.list()->size());
}

/// Calls `visit` with every combination of one size a dimension.
void for_each_combination(std::span<const std::vector<int64_t>> sizes,
                          const std::function<void(std::span<const int64_t>)> &visit) {
  std::vector<size_t> at(sizes.size());
  std::vector<int64_t> dims(sizes.size());
  for (;;) {
    for (size_t d = 0; d < sizes.size(); ++d)
      dims[d] = sizes[d][at[d]];
    visit(dims);
    size_t d = sizes.size();
    while (d > 0 && ++at[d - 1] == sizes[d - 1].size())
      at[--d] = 0;
    if (d == 0)
      return;
  }
}

Error wrong_sizes(const Signature &signature, const std::string &what) {
  return Error(ErrorCode::invalid_argument, "sizes for '" + signature.name + "': " + what,
               {signature.span});
}

/// Refuses names that the kernel has not, and dimensions without sizes.
void check_request(const Signature &signature, const SizeRequest &request,
                   const PrepareOptions &options) {
  for (const auto &[name, sizes] : request) {
    if (!signature.find_dim(name))
      throw wrong_sizes(signature, "there is no dimension '" + name + "'");
    if (sizes.range() ? !size_classes(*sizes.range()) : sizes.list()->empty())
      throw wrong_sizes(signature,
                        "'" + name + "': " +
                            (sizes.range() ? size_classes(*sizes.range()).error().message()
                                           : "expected at least one size"));
    if (sizes.list() && std::ranges::any_of(*sizes.list(), [](int64_t size) { return size < 0; }))
      throw wrong_sizes(signature, "'" + name + "': expected sizes from 0 on");
  }
  for (const auto &entry : options.scalars)
    if (!signature.find_scalar(entry.first))
      throw wrong_sizes(signature, "there is no scalar '" + entry.first + "'");
}

/// The sizes to look at, by dimension.
std::vector<std::vector<int64_t>> sizes_by_dim(const Signature &signature,
                                               const SizeRequest &request,
                                               const std::map<std::string, int64_t> &fixed) {
  std::vector<SizeSet> sets;
  double count = 1;
  for (const std::string &dim : signature.dims) {
    auto given = request.find(dim);
    auto known = fixed.find(dim);
    if (given == request.end() && known == fixed.end())
      throw wrong_sizes(signature, "give the sizes of dimension '" + dim + "'");
    sets.push_back(given == request.end() ? SizeSet(known->second) : given->second);
    count *= count_of(sets.back());
  }
  const bool all = count <= static_cast<double>(max_combinations);
  std::vector<std::vector<int64_t>> sizes;
  count = 1;
  for (const SizeSet &set : sets) {
    sizes.push_back(sizes_of(set, all));
    count *= static_cast<double>(sizes.back().size());
  }
  if (count > static_cast<double>(max_combinations))
    throw wrong_sizes(signature, "there are more than " + std::to_string(max_combinations) +
                                     " combinations of keys: give fewer");
  return sizes;
}

/// The scalars that are given; 1 for those that have no default.
std::vector<std::optional<Scalar>> scalars_of(const Signature &signature,
                                              const std::map<std::string, Scalar> &given) {
  std::vector<std::optional<Scalar>> scalars(signature.num_scalars());
  for (unsigned s = 0; s < scalars.size(); ++s) {
    const Parameter &scalar = signature.scalar(s);
    auto value = given.find(scalar.name);
    if (value != given.end())
      scalars[s] = value->second;
    else if (!scalar.has_default)
      scalars[s] = Scalar(1);
    // Other languages have one type for all numbers.
    if (scalars[s] && scalars[s]->is_float && is_integer(scalar.dtype) &&
        scalars[s]->f == std::trunc(scalars[s]->f) && std::abs(scalars[s]->f) < 0x1p62)
      scalars[s] = Scalar(static_cast<int64_t>(scalars[s]->f));
  }
  return scalars;
}

/// Dense tensors of these sizes, at no address.
Arguments arguments_for(const Signature &signature, std::span<const int64_t> dims,
                        std::span<const std::optional<Scalar>> scalars, Device device) {
  std::vector<Scalar> variables = complete_variables(signature, dims, scalars).value();
  Arguments arguments;
  arguments.scalars.assign(scalars.begin(), scalars.end());
  for (unsigned t = 0; t < signature.num_tensors(); ++t) {
    const Parameter &tensor = signature.tensor(t);
    arguments.tensors.push_back(
        TensorView(nullptr, tensor.dtype, shape_of(tensor, variables).value(), device));
  }
  return arguments;
}

/// Whether an error says that there are no launches of such sizes.
bool excludes_sizes(ErrorCode code) {
  return code == ErrorCode::constraint_failed || code == ErrorCode::shape_mismatch;
}

} // namespace

void KernelImpl::set_classes(const SizeRequest &request) {
  if (!m_compiled->compiles())
    return; // the variants are what they are
  std::lock_guard lock(m_mutex);
  for (const auto &[name, sizes] : request)
    if (auto dim = signature().find_dim(name)) {
      PreparedSizes &prepared = m_prepared[*dim];
      if (sizes.range())
        prepared.classes = size_classes(*sizes.range()).value();
      else
        prepared.listed.insert(sizes.list()->begin(), sizes.list()->end());
    }
  // Calls of before would keep the variants of their own keys.
  m_bound.clear();
  m_known.clear();
  if (m_checks)
    m_checks->set_classes(request);
}

void KernelImpl::add_jobs(const SizeRequest &request, const PrepareOptions &options,
                          std::vector<Job> &jobs) {
  const auto scalars = scalars_of(signature(), options.scalars);
  const Device device = on_gpu() ? Device::cuda(0) : Device::cpu();
  std::map<std::pair<KernelImpl *, std::string>, size_t> known;
  std::optional<Error> refused;
  auto add = [&](KernelImpl &kernel, const CheckedArguments &checked) {
    Facts facts = kernel.facts_of_launch(checked);
    auto [entry, isNew] = known.try_emplace({&kernel, facts.key()}, jobs.size());
    if (isNew)
      jobs.push_back({&kernel, std::move(facts), checked.variables, {}, nullptr});
    jobs[entry->second].last = checked.variables;
  };
  auto visit = [&](std::span<const int64_t> dims) {
    Expected<CheckedArguments> checked = capture([&] {
      return check_arguments(signature(), arguments_for(signature(), dims, scalars, device),
                             device.kind);
    });
    if (!checked) {
      if (!excludes_sizes(checked.error().code()))
        throw checked.error();
      refused = checked.error();
      return;
    }
    add(*this, *checked);
    if (m_checks)
      add(*m_checks, check_arguments(m_checks->signature(), m_checks->arguments_of_checks(*checked),
                                     device.kind));
  };
  for_each_combination(sizes_by_dim(signature(), request, m_options.dims), visit);
  if (jobs.empty() && refused)
    throw Error(*refused);
}

void KernelImpl::run(Job &job) {
  std::vector<int64_t> dims;
  for (size_t d = 0; d < signature().dims.size(); ++d)
    dims.push_back(job.first[d].i);
  job.variant = variant(job.facts, dims);
  load(*job.variant);
}

void KernelImpl::load(const Variant &variant) {
  const Executable &executable = variant.executable;
  if (executable.kind != Executable::Kind::cuda)
    return;
  // A machine without a GPU may still fill the cache.
  Expected<cuda::DeviceContext *> device = cuda::DeviceContext::get(0);
  if (!device)
    return;
  std::shared_ptr<cuda::GpuModule> loaded = cuda::GpuModule::load(**device, executable.cubin);
  std::lock_guard lock(m_mutex);
  if (!std::count(m_loaded.begin(), m_loaded.end(), loaded))
    m_loaded.push_back(std::move(loaded));
}

size_t KernelImpl::prepare_sizes(const SizeRequest &request, const PrepareOptions &options) {
  check_request(signature(), request, options);
  if (m_frozen->load() && m_compiled->compiles())
    throw Error(ErrorCode::frozen,
                "the module is frozen: prepare '" + signature().name + "' before the freeze",
                {signature().span});
  set_classes(request);
  std::vector<Job> jobs;
  add_jobs(request, options, jobs);
  const unsigned threads =
      options.threads ? options.threads : std::max(std::thread::hardware_concurrency(), 1u);
  size_t total = jobs.size();
  auto tell = [&](size_t number) {
    if (options.progress)
      options.progress(number, total);
  };
  auto compile_from = [&](size_t first) {
    Crew crew(total - first, [&](size_t i) { jobs[first + i].kernel->run(jobs[first + i]); });
    crew.run(threads, [&](size_t number) { tell(first + number); });
  };
  tell(0);
  compile_from(0);
  // How large the buffers between launches are is known once it is known what is launched.
  for (size_t i = 0; i < total; ++i) {
    const LaunchPlan &plan = jobs[i].variant->executable.plan;
    if (!jobs[i].facts.small_tensors ||
        (scratch_is_small(plan, jobs[i].first) && scratch_is_small(plan, jobs[i].last)))
      continue;
    Job large = jobs[i];
    large.facts.small_tensors = false;
    if (std::ranges::none_of(jobs, [&](const Job &job) {
          return job.kernel == large.kernel && job.facts.key() == large.facts.key();
        }))
      jobs.push_back(std::move(large));
  }
  if (const size_t first = std::exchange(total, jobs.size()); first < total)
    compile_from(first);
  return total;
}

} // namespace tk::detail
