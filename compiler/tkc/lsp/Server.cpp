//===- Server.cpp - the language server -----------------------------------===//
//
// Messages are read and answered in turn, on LLVM's transport. Each change of a text analyses it
// anew: a text of a thousand lines takes a few milliseconds.
//
//===----------------------------------------------------------------------===//
#include "compiler/tkc/lsp/Server.h"

#include "compiler/tkc/lsp/Answers.h"
#include "compiler/tkc/lsp/Document.h"

#include "llvm/Support/LSP/Transport.h"

#include <memory>

namespace tk::lsp {
namespace {

namespace protocol = llvm::lsp;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;
using Reply = protocol::Callback<Value>;

struct RenameParams : protocol::TextDocumentPositionParams {
  std::string newName;
};

bool fromJSON(const Value &value, RenameParams &result, llvm::json::Path path) {
  llvm::json::ObjectMapper map(value, path);
  return protocol::fromJSON(value, static_cast<protocol::TextDocumentPositionParams &>(result),
                            path) &&
         map && map.map("newName", result.newName);
}

struct HintParams {
  protocol::TextDocumentIdentifier textDocument;
  protocol::Range range;
};

bool fromJSON(const Value &value, HintParams &result, llvm::json::Path path) {
  llvm::json::ObjectMapper map(value, path);
  return map && map.map("textDocument", result.textDocument) && map.map("range", result.range);
}

bool isIdentifier(llvm::StringRef name) {
  return !name.empty() && !llvm::isDigit(name[0]) &&
         llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

/// Leaves out messages that are JSON and no message of the protocol. LLVM's transport ends at
/// these.
class MessageInput : public protocol::JSONTransportInput {
public:
  explicit MessageInput(std::FILE *file) : input(file) {}

  bool hasError() const override { return input.hasError(); }
  bool isEndOfInput() const override { return input.isEndOfInput(); }
  llvm::LogicalResult readStandardMessage(std::string &json) override { return read(json); }
  llvm::LogicalResult readDelimitedMessage(std::string &json) override { return read(json); }

private:
  llvm::LogicalResult read(std::string &json) {
    while (input.readMessage(json).succeeded()) {
      llvm::Expected<Value> value = llvm::json::parse(json);
      if (!value) {
        // The transport reports it, and goes on.
        llvm::consumeError(value.takeError());
        return llvm::success();
      }
      const Object *object = value->getAsObject();
      if (object && object->getString("jsonrpc") == "2.0" &&
          (object->getString("method") || object->get("id")))
        return llvm::success();
    }
    return llvm::failure();
  }

  protocol::JSONTransportInputOverFile input;
};

class Server {
public:
  explicit Server(protocol::JSONTransport &transport) : handler(transport) {
    publish = handler.outgoingNotification<Value>("textDocument/publishDiagnostics");
    handler.method("initialize", this, &Server::initialize);
    handler.method("shutdown", this, &Server::shutdown);
    handler.notification("textDocument/didOpen", this, &Server::opened);
    handler.notification("textDocument/didChange", this, &Server::changed);
    handler.notification("textDocument/didClose", this, &Server::closed);
    handler.method("textDocument/hover", this, &Server::hover);
    handler.method("textDocument/definition", this, &Server::definition);
    handler.method("textDocument/references", this, &Server::references);
    handler.method("textDocument/rename", this, &Server::rename);
    handler.method("textDocument/completion", this, &Server::complete);
    handler.method("textDocument/signatureHelp", this, &Server::signature);
    handler.method("textDocument/formatting", this, &Server::format);
    handler.method("textDocument/documentSymbol", this, &Server::symbols);
    handler.method("textDocument/inlayHint", this, &Server::hints);
    handler.method("textDocument/codeAction", this, &Server::actions);
  }
  protocol::MessageHandler handler;

private:
  using Position = protocol::TextDocumentPositionParams;
  using Whole = protocol::DocumentSymbolParams;

  void initialize(const protocol::NoParams &, Reply reply) {
    reply(Object{{"serverInfo", Object{{"name", "tkc"}, {"version", "0.1.0"}}},
                 {"capabilities",
                  Object{{"textDocumentSync", Object{{"openClose", true}, {"change", 2}}},
                         {"hoverProvider", true},
                         {"definitionProvider", true},
                         {"referencesProvider", true},
                         {"renameProvider", true},
                         {"completionProvider", Object{}},
                         {"signatureHelpProvider", Object{{"triggerCharacters", Array{"(", ","}}}},
                         {"documentFormattingProvider", true},
                         {"documentSymbolProvider", true},
                         {"inlayHintProvider", true},
                         {"codeActionProvider", true}}}});
  }
  void shutdown(const protocol::NoParams &, Reply reply) { reply(nullptr); }

  void opened(const protocol::DidOpenTextDocumentParams &params) {
    set(params.textDocument.uri, params.textDocument.text);
  }

  void changed(const protocol::DidChangeTextDocumentParams &params) {
    auto known = texts.find(canonicalPath(params.textDocument.uri.file().str()));
    if (known == texts.end())
      return;
    std::string text = known->second;
    for (const protocol::TextDocumentContentChangeEvent &change : params.contentChanges) {
      if (!change.range) {
        text = change.text;
        continue;
      }
      const SourceFile file(0, "", "", text);
      auto begin = offsetOf(file, {change.range->start.line, change.range->start.character});
      auto end = offsetOf(file, {change.range->end.line, change.range->end.character});
      text.replace(begin, std::max(begin, end) - begin, change.text);
    }
    set(params.textDocument.uri, std::move(text));
  }

  void closed(const protocol::DidCloseTextDocumentParams &params) {
    const std::string path = canonicalPath(params.textDocument.uri.file().str());
    texts.erase(path);
    uris.erase(path);
    documents.clear();
    publish(Object{{"uri", params.textDocument.uri.uri()}, {"diagnostics", Array{}}});
  }

  void set(const protocol::URIForFile &uri, std::string text) {
    const std::string path = canonicalPath(uri.file().str());
    texts[path] = std::move(text);
    uris[path] = uri.uri().str();
    documents.clear(); // others may import this one
    for (const auto &[open, name] : uris)
      report(open, name);
  }

  Document &documentOf(const std::string &path) {
    std::unique_ptr<Document> &document = documents[path];
    if (!document)
      document = std::make_unique<Document>(path, texts[path], texts);
    return *document;
  }

  /// The document that a request is about; null and an answer if it is not open.
  Document *find(const protocol::URIForFile &uri, Reply &reply) {
    const std::string path = canonicalPath(uri.file().str());
    if (texts.contains(path))
      return &documentOf(path);
    reply(nullptr);
    return nullptr;
  }

  static std::uint32_t offset(const Document &document, const protocol::Position &position) {
    return offsetOf(document.main(), {position.line, position.character});
  }

  std::string uriOf(const std::string &path) const {
    const std::string canonical = canonicalPath(path);
    if (auto known = uris.find(canonical); known != uris.end())
      return known->second;
    llvm::Expected<protocol::URIForFile> uri = protocol::URIForFile::fromFile(canonical);
    if (uri)
      return uri->uri().str();
    llvm::consumeError(uri.takeError());
    return {};
  }

  Object locationJson(const Document &document, Span span) const {
    const SourceFile &file = document.files().file(span.file);
    return Object{{"uri", uriOf(file.name())}, {"range", rangeJson(file, span)}};
  }

  void report(const std::string &path, const std::string &uri) {
    const Document &document = documentOf(path);
    Array list;
    for (const Diagnostic *diagnostic : document.diagnostics().sorted())
      list.push_back(diagnosticJson(document, *diagnostic));
    publish(Object{{"uri", uri}, {"diagnostics", std::move(list)}});
  }

  /// A diagnostic in another file, such as an imported one, stands at the beginning of this one.
  Object diagnosticJson(const Document &document, const Diagnostic &diagnostic) const {
    const SourceFile &main = document.main();
    const bool isHere = diagnostic.span.valid() && diagnostic.span.file == main.id();
    std::string message =
        isHere || !diagnostic.span.valid()
            ? diagnostic.message
            : document.files().describe(diagnostic.span) + ": " + diagnostic.message;
    auto add = [&](const std::string &what, const std::string &text) {
      if (!text.empty())
        message += "\n" + what + text;
    };
    add("", diagnostic.label);
    add("expected: ", diagnostic.expected);
    add("found: ", diagnostic.found);
    for (const std::string &note : diagnostic.notes)
      add("note: ", note);
    for (const std::string &help : diagnostic.help)
      add("help: ", help);
    Array related;
    for (const DiagLabel &label : diagnostic.labels)
      related.push_back(
          Object{{"location", locationJson(document, label.span)}, {"message", label.text}});
    return Object{{"range", rangeJson(main, isHere ? diagnostic.span : Span{main.id(), 0, 0})},
                  {"severity", static_cast<int>(diagnostic.severity) + 1},
                  {"code", info(diagnostic.id).code()},
                  {"source", "tkc"},
                  {"message", std::move(message)},
                  {"relatedInformation", std::move(related)}};
  }

  void hover(const Position &params, Reply reply) {
    Document *document = find(params.textDocument.uri, reply);
    if (!document)
      return;
    auto thing = document->thingAt(offset(*document, params.position));
    if (!thing)
      return reply(nullptr);
    std::string text = document->describe(*thing);
    if (const std::string cost = document->describeCost(*thing); !cost.empty())
      text += "\n\n" + cost;
    reply(Object{{"contents", Object{{"kind", "markdown"}, {"value", std::move(text)}}}});
  }

  void definition(const Position &params, Reply reply) {
    Document *document = find(params.textDocument.uri, reply);
    if (!document)
      return;
    auto thing = document->thingAt(offset(*document, params.position));
    reply(thing && thing->isRenamable ? Value(locationJson(*document, thing->declaration))
                                      : Value(nullptr));
  }

  void references(const protocol::ReferenceParams &params, Reply reply) {
    Document *document = find(params.textDocument.uri, reply);
    if (!document)
      return;
    Array list;
    if (auto thing = document->thingAt(offset(*document, params.position)))
      for (Span span : thing->occurrences)
        if (params.context.includeDeclaration || !(span == thing->declaration))
          list.push_back(locationJson(*document, span));
    reply(std::move(list));
  }

  void complete(const Position &params, Reply reply) {
    if (const Document *document = find(params.textDocument.uri, reply))
      reply(completionsAt(*document, offset(*document, params.position)));
  }

  void signature(const Position &params, Reply reply) {
    if (const Document *document = find(params.textDocument.uri, reply))
      reply(signatureAt(*document, offset(*document, params.position)));
  }

  void format(const Whole &params, Reply reply) {
    if (const Document *document = find(params.textDocument.uri, reply))
      reply(formattingEdits(*document));
  }

  void symbols(const Whole &params, Reply reply) {
    if (const Document *document = find(params.textDocument.uri, reply))
      reply(symbolsOf(*document));
  }

  void hints(const HintParams &params, Reply reply) {
    const Document *document = find(params.textDocument.uri, reply);
    if (!document)
      return;
    const Span within{document->main().id(), offset(*document, params.range.start),
                      offset(*document, params.range.end)};
    reply(hintsIn(*document, within, stored));
  }

  void rename(const RenameParams &params, Reply reply);
  void actions(const protocol::CodeActionParams &params, Reply reply);

  protocol::OutgoingNotification<Value> publish;
  OpenTexts texts;
  StorageCache stored;
  std::map<std::string, std::string> uris; ///< of the open texts
  std::map<std::string, std::unique_ptr<Document>> documents;
};

/// Renames if the text has no error that it did not have, and the name's occurrences stay together.
void Server::rename(const RenameParams &params, Reply reply) {
  Document *document = find(params.textDocument.uri, reply);
  if (!document)
    return;
  auto refuse = [&](const std::string &why) {
    reply(llvm::make_error<protocol::LSPError>(why, protocol::ErrorCode::RequestFailed));
  };
  const std::uint32_t at = offset(*document, params.position);
  auto thing = document->thingAt(at);
  if (!thing || !thing->isRenamable)
    return refuse("there is no name here that can be renamed");
  if (!isIdentifier(params.newName))
    return refuse("'" + params.newName + "' is not a name");
  std::string text(document->main().text());
  std::uint32_t moved = at;
  std::size_t inMain = 0;
  for (auto span = thing->occurrences.rbegin(); span != thing->occurrences.rend(); ++span) {
    if (span->file != document->main().id())
      continue;
    ++inMain;
    text.replace(span->begin, span->size(), params.newName);
    if (span->end <= at && span->begin < at)
      moved += static_cast<std::uint32_t>(params.newName.size()) - span->size();
  }
  if (inMain == thing->occurrences.size()) {
    Document after(document->main().name(), text, texts);
    auto renamed = after.thingAt(std::min(moved, after.main().size()));
    if (after.diagnostics().errorCount() > document->diagnostics().errorCount() || !renamed ||
        renamed->occurrences.size() != thing->occurrences.size())
      return refuse("'" + params.newName + "' has another meaning here");
  }
  std::map<std::string, Array> edits;
  for (Span span : thing->occurrences) {
    const SourceFile &file = document->files().file(span.file);
    edits[uriOf(file.name())].push_back(
        Object{{"range", rangeJson(file, span)}, {"newText", params.newName}});
  }
  Object changes;
  for (auto &[uri, list] : edits)
    changes[uri] = std::move(list);
  reply(Object{{"changes", std::move(changes)}});
}

void Server::actions(const protocol::CodeActionParams &params, Reply reply) {
  Document *document = find(params.textDocument.uri, reply);
  if (!document)
    return;
  const SourceFile &file = document->main();
  Array list;
  for (const Diagnostic *diagnostic : document->diagnostics().sorted())
    for (const DiagFix &fix : diagnostic->fixes) {
      Utf16Place from = placeOf(file, diagnostic->span.begin);
      if (fix.span.file != file.id() || from.line < params.range.start.line ||
          from.line > params.range.end.line)
        continue;
      Object edit{{"range", rangeJson(file, fix.span)}, {"newText", fix.replacement}};
      list.push_back(Object{
          {"title", (fix.span.size() ? "replace with '" : "insert '") + fix.replacement + "'"},
          {"kind", "quickfix"},
          {"edit", Object{{"changes", Object{{uriOf(file.name()), Array{std::move(edit)}}}}}}});
    }
  reply(std::move(list));
}

} // namespace

int serve() {
  protocol::URIForFile::registerSupportedScheme("untitled");
  protocol::JSONTransport transport(std::make_unique<MessageInput>(stdin), llvm::outs());
  Server server(transport);
  // The end of the input without `exit` is an error to the transport, and an end to us.
  llvm::consumeError(transport.run(server.handler));
  return 0;
}

} // namespace tk::lsp
