//===- StageText.cpp - the text of a stage, with lines of the source ------===//
#include "compiler/StageText.h"

#include "mlir/IR/AsmState.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <map>
#include <tuple>
#include <utility>

using namespace mlir;

namespace tk {

std::string printModule(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  OpPrintingFlags flags;
  flags.elideLargeElementsAttrs();
  module.print(out, flags);
  return text;
}

/// CUDA text and machine code have question marks in place of characters that they cannot have.
static bool isSameName(StringRef written, StringRef name) {
  return written.size() == name.size() && llvm::all_of(llvm::zip(written, name), [](auto pair) {
           auto [w, n] = pair;
           return w == n || w == '?';
         });
}

std::optional<unsigned> PlaceTable::number(StringRef file, unsigned line) {
  for (FileId id = 0; id < sources.size(); ++id) {
    StringRef name = sources.file(id).label();
    const bool isPath = file.size() > name.size() && file[file.size() - name.size() - 1] == '/';
    if (line == 0 || line > sources.file(id).lineCount() || name.empty() ||
        !(isSameName(file, name) || (isPath && isSameName(file.take_back(name.size()), name))))
      continue;
    SourcePlace place{id, line};
    auto known = llvm::find(list, place);
    const auto number = static_cast<unsigned>(known - list.begin());
    if (known == list.end())
      list.push_back(place);
    return number;
  }
  return std::nullopt;
}

std::vector<unsigned> PlaceTable::numbers(Location where) {
  std::vector<unsigned> found;
  where->walk([&](Location inner) {
    if (auto file = dyn_cast<FileLineColLoc>(inner))
      if (auto line = number(file.getFilename(), file.getLine()))
        if (!llvm::is_contained(found, *line))
          found.push_back(*line);
    return WalkResult::advance();
  });
  llvm::sort(found);
  return found;
}

namespace {

/// Adds lines to a stage.
struct Lines {
  StageText stage;

  void add(StringRef line, std::vector<unsigned> from) {
    stage.text += line.str() + "\n";
    stage.lines.push_back(std::move(from));
  }
  void add(StringRef line, std::optional<unsigned> from) {
    add(line, from ? std::vector<unsigned>{*from} : std::vector<unsigned>());
  }
};

/// Calls `use` with each line.
void forLines(StringRef text, llvm::function_ref<void(StringRef)> use) {
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    use(line);
    text = rest;
  }
}

/// The text between the first and the last quote of a line.
StringRef quoted(StringRef line) {
  return line.slice(line.find('"') + 1, std::max(line.rfind('"'), line.find('"') + 1));
}

} // namespace

StageText stageOfModule(StringRef name, ModuleOp module, PlaceTable &places) {
  StageText stage;
  stage.name = name.str();
  llvm::raw_string_ostream out(stage.text);
  OpPrintingFlags flags;
  flags.elideLargeElementsAttrs();
  AsmState::LocationMap where;
  AsmState state(module, flags, &where);
  module->print(out, state);
  out << "\n";
  stage.lines.resize(StringRef(stage.text).count('\n'));
  for (auto [op, at] : where) {
    if (at.first == 0 || at.first > stage.lines.size() || isa<ModuleOp>(op))
      continue;
    stage.lines[at.first - 1] = places.numbers(op->getLoc());
  }
  return stage;
}

StageText stageOfCuda(StringRef text, PlaceTable &places) {
  Lines lines{{.name = "cuda", .text = {}, .missing = {}, .lines = {}}};
  std::optional<unsigned> next;
  bool isBelowComment = false; // which is of the line that the next directive names
  forLines(text, [&](StringRef line) {
    StringRef rest = line;
    unsigned number = 0;
    if (rest.consume_front("#line ") && !rest.consumeInteger(10, number)) {
      next = places.number(quoted(rest), number);
      if (next && isBelowComment)
        lines.stage.lines.back() = {*next};
      return;
    }
    isBelowComment = rest.ltrim().starts_with("//");
    lines.add(line, next);
    next.reset();
  });
  return std::move(lines.stage);
}

/// The comment before each kernel of a CUDA text, by the kernels' names.
static std::map<StringRef, std::string> headsOf(StringRef cuda) {
  std::map<StringRef, std::string> heads;
  std::string head;
  bool isKernel = false;
  forLines(cuda, [&](StringRef line) {
    if (line.starts_with("#line"))
      return;
    if (isKernel) { // the line behind the attributes
      heads[line.take_until([](char c) { return c == '('; })] = std::exchange(head, "");
      isKernel = false;
    } else if (line.starts_with("//")) {
      head += line.rtrim().str() + "\n";
    } else if (line.starts_with("extern \"C\" __global__")) {
      isKernel = true;
    } else {
      head.clear();
    }
  });
  return heads;
}

std::string withHeads(StringRef ptx, StringRef cuda) {
  const std::map<StringRef, std::string> heads = headsOf(cuda);
  std::string text;
  forLines(ptx, [&](StringRef line) {
    StringRef rest = line;
    if (rest.consume_front(".visible .entry ") || rest.consume_front(".entry "))
      if (auto head = heads.find(rest.take_until([](char c) { return c == '('; }));
          head != heads.end())
        text += head->second;
    text += line.str() + "\n";
  });
  return text;
}

StageText stageOfPtx(StringRef text, PlaceTable &places) {
  std::map<unsigned, StringRef> files;
  forLines(text, [&](StringRef line) {
    StringRef rest = line.trim();
    unsigned number = 0;
    if (rest.consume_front(".file") && !rest.ltrim().consumeInteger(10, number)) {
      rest = rest.ltrim();
      rest.consumeInteger(10, number);
      files[number] = quoted(rest);
    }
  });
  Lines lines{{.name = "ptx", .text = {}, .missing = {}, .lines = {}}};
  // A place inside a function that was inlined stands for the place of the outermost call.
  using Place = std::tuple<unsigned, unsigned, unsigned>;
  auto readPlace = [](StringRef &rest) {
    Place place;
    auto read = [&](unsigned &number) {
      rest = rest.ltrim();
      rest.consumeInteger(10, number);
    };
    read(std::get<0>(place)), read(std::get<1>(place)), read(std::get<2>(place));
    return place;
  };
  std::map<Place, Place> outermost;
  std::optional<unsigned> current;
  bool isDebug = false; // sections behind the code
  forLines(text, [&](StringRef line) {
    StringRef rest = line.trim();
    isDebug |= rest.starts_with(".file") || rest.starts_with(".section");
    if (isDebug)
      return;
    if (rest.starts_with("}"))
      current.reset();
    if (!rest.consume_front(".loc")) {
      const bool isCode = rest.ends_with(";") && !rest.starts_with(".");
      return lines.add(line, isCode ? current : std::nullopt);
    }
    Place place = readPlace(rest), root = place;
    if (size_t at = rest.find("inlined_at"); at != StringRef::npos) {
      rest = rest.drop_front(at + StringRef("inlined_at").size());
      Place call = readPlace(rest);
      auto known = outermost.find(call);
      root = known == outermost.end() ? call : known->second;
    }
    outermost[place] = root;
    current = places.number(files[std::get<0>(root)], std::get<1>(root));
  });
  return std::move(lines.stage);
}

StageText stageOfSass(StringRef text, PlaceTable &places) {
  Lines lines{{.name = "sass", .text = {}, .missing = {}, .lines = {}}};
  std::optional<unsigned> current;
  bool isFirst = true; // the lines of a place go from the innermost call to the outermost
  forLines(text, [&](StringRef line) {
    StringRef rest = line.trim();
    if (rest.consume_front("//## File ")) {
      if (std::exchange(isFirst, false))
        current.reset();
      unsigned number = 0;
      auto [file, behind] = rest.split("\", line ");
      if (!behind.consumeInteger(10, number))
        if (auto found = places.number(file.ltrim('"'), number))
          current = found;
      return;
    }
    if (rest.starts_with("//--"))
      current.reset();
    isFirst = true;
    lines.add(line, rest.starts_with("/*") ? current : std::nullopt);
  });
  return std::move(lines.stage);
}

} // namespace tk
