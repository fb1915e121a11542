// Schedule blocks: known keys, legal values, indices that the kernel has.

#include "frontend/SemaKernel.h"

#include <algorithm>
#include <bit>

namespace tk::sema {

namespace {
enum class Form { PerIndex, Count, Flag, Raster };
struct Key {
  const char *name;
  Form form;
  std::int64_t lowest, highest;
  bool powerOfTwo;
};
constexpr Key keys[] = {
    {"tile", Form::PerIndex, 1, 1024, false}, {"coarsen", Form::PerIndex, 1, 64, true},
    {"vector", Form::Count, 1, 16, true},     {"stages", Form::Count, 1, 16, false},
    {"consumers", Form::Count, 1, 4, false},  {"cluster", Form::PerIndex, 1, 16, true},
    {"split", Form::PerIndex, 1, 256, false}, {"persistent", Form::Flag, 0, 1, false},
    {"raster", Form::Raster, 1, 64, false},   {"teams", Form::Count, 1, 3, false},
    {"overlap", Form::Flag, 0, 1, false},
};
constexpr const char *archs[] = {"cpu",     "emu",    "sm_80",  "sm_86",  "sm_87",
                                 "sm_89",   "sm_90",  "sm_90a", "sm_100", "sm_100a",
                                 "sm_103a", "sm_120", "sm_120a"};

std::string legal(const Key &key) {
  if (key.form == Form::Flag)
    return "no value, true or false";
  if (key.form == Form::Raster)
    return "rows, columns, or grouped(n) with n from 1 to 64";
  return std::string(key.powerOfTwo ? "a power of two" : "an integer") + " from " +
         std::to_string(key.lowest) + " to " + std::to_string(key.highest);
}

/// Reads the entries of schedule blocks.
class EntryReader {
public:
  EntryReader(Diagnostics &diags, const Kernel &kernel) : diags(diags), kernel(kernel) {
    for (const IndexVar &var : kernel.indices)
      names.push_back(var.name);
  }

  /// The entry without the values that are not legal; nothing if a schedule has no such key.
  std::optional<ScheduleEntry> read(const ast::ScheduleEntry &entry);

private:
  bool checkAxis(const ast::ScheduleValue &value, const std::string &name, const Key &key);
  std::optional<ScheduleValue> readValue(const ast::ScheduleValue &value, const std::string &name,
                                         const Key &key);
  void illegal(const std::string &name, const Key &key, Span span) {
    diags.error(Diag::IllegalScheduleValue, span).expected(legal(key))
        << "'" << name << "' cannot have this value";
  }

  Diagnostics &diags;
  const Kernel &kernel;
  std::vector<std::string_view> names;
};

/// Is the value for an index that the kernel has, or for none, as the key wants it?
bool EntryReader::checkAxis(const ast::ScheduleValue &value, const std::string &name,
                            const Key &key) {
  if ((key.form == Form::PerIndex) == value.axis.empty()) {
    diags.error(Diag::IllegalScheduleValue, value.span)
            .expected(key.form == Form::PerIndex ? name + " i = n" : name + " = n")
        << (value.axis.empty() ? "this key is set for each index"
                               : "this key is not set for single indices");
    return false;
  }
  if (!value.axis.empty() && std::find(names.begin(), names.end(), value.axis) == names.end()) {
    auto d = diags.error(Diag::UnknownScheduleIndex, value.axisSpan);
    d << "kernel '" << kernel.source->name << "' has no index '" << value.axis << "'";
    if (std::string hint = didYouMean(value.axis, names); !hint.empty())
      d.help(hint);
    return false;
  }
  return true;
}

std::optional<ScheduleValue> EntryReader::readValue(const ast::ScheduleValue &value,
                                                    const std::string &name, const Key &key) {
  ScheduleValue v;
  v.axis = value.axis;
  if (!checkAxis(value, name, key))
    return std::nullopt;
  const auto *number = ast::as<ast::IntLit>(value.value.get());
  const auto *word = ast::as<ast::NameRef>(value.value.get());
  const auto *truth = ast::as<ast::BoolLit>(value.value.get());
  const auto *group = ast::as<ast::Call>(value.value.get());
  if (group && group->args.size() == 1 && group->name == "grouped") {
    number = ast::as<ast::IntLit>(group->args[0].get());
    v.word = "grouped";
  }
  bool ok = key.form == Form::Flag ? (!value.value || truth)
            : key.form == Form::Raster
                ? (word && (word->name == "rows" || word->name == "columns")) || (number && group)
                : number && !group;
  if (ok && number)
    ok = number->value >= key.lowest && number->value <= key.highest &&
         (!key.powerOfTwo || (number->value & (number->value - 1)) == 0);
  if (!ok) {
    illegal(name, key, value.value ? value.value->span : value.span);
    return std::nullopt;
  }
  v.value = number ? number->value : truth ? truth->value : 1;
  if (name == "tile" && !std::has_single_bit(static_cast<std::uint64_t>(v.value))) {
    auto used = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(v.value)));
    diags.warning(Diag::TileNotPowerOfTwo, value.value->span)
            .expected("a power of two")
            .fix(value.value->span, std::to_string(used))
        << "a tile of " << v.value << " along '" << v.axis << "' is used as one of " << used;
    v.value = used;
  }
  if (word)
    v.word = word->name;
  return v;
}

std::optional<ScheduleEntry> EntryReader::read(const ast::ScheduleEntry &entry) {
  const Key *key = std::find_if(std::begin(keys), std::end(keys),
                                [&](const Key &k) { return k.name == entry.key; });
  if (key == std::end(keys)) {
    diags.error(Diag::UnknownScheduleKey, entry.keySpan)
            .expected("tile, coarsen, vector, stages, consumers, teams, cluster, split, "
                      "persistent, raster or overlap")
        << "a schedule has no key '" << entry.key << "'";
    return std::nullopt;
  }
  ScheduleEntry made{entry.key, entry.keySpan, {}};
  if (entry.values.empty() && key->form != Form::Flag)
    illegal(entry.key, *key, entry.span);
  if (entry.values.size() > 1 && key->form != Form::PerIndex)
    illegal(entry.key, *key, entry.values[1].span);
  for (const ast::ScheduleValue &value : entry.values)
    if (std::optional<ScheduleValue> read = readValue(value, entry.key, *key))
      made.values.push_back(*read);
  return made;
}
} // namespace

void KernelSema::schedule(const ast::Schedule &schedule) {
  Schedule result;
  result.span = schedule.nameSpan;
  result.arch = schedule.arch;
  if (!schedule.arch.empty() &&
      std::find(std::begin(archs), std::end(archs), schedule.arch) == std::end(archs))
    diags.error(Diag::UnknownArchitecture, schedule.archSpan)
            .expected("cpu, emu, sm_80, sm_86, sm_87, sm_89, sm_90, sm_90a, sm_100, sm_100a, "
                      "sm_103a, sm_120 or sm_120a")
        << "unknown architecture '" << schedule.arch << "'";
  if (schedule.when) {
    indexMode = true;
    Node *n = expr(*schedule.when);
    indexMode = false;
    if (n && (n->type != Type::Bool || !n->kernelLevel))
      diags.error(Diag::BadConstraint, schedule.when->span)
          << "a schedule's condition is one on dimensions and scalar parameters";
    else
      result.when = n;
    result.whenText = diags.sources().text(schedule.when->span);
    result.whenSpan = schedule.when->span;
  }
  EntryReader reader(diags, out);
  for (const ast::ScheduleEntry &entry : schedule.entries)
    if (std::optional<ScheduleEntry> made = reader.read(entry))
      result.entries.push_back(std::move(*made));
  out.schedules.push_back(std::move(result));
}

} // namespace tk::sema
