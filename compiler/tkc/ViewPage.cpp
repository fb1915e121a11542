//===- ViewPage.cpp - a kernel's view as a page ---------------------------===//
//
// The page is compiler/tkc/view/page.html with the style, the program and the document in the
// places of its markers. The document stands in script elements of a type that no browser runs; its
// `<` and `&` are escaped, so that no text of the program ends the element. What the passes changed
// has an element of its own, which the page reads once somebody asks for it.
//
//===----------------------------------------------------------------------===//
#include "compiler/tkc/ViewDocument.h"

#include "llvm/Support/raw_ostream.h"

namespace tk::tkc {

// The files of compiler/tkc/view; the build embeds them.
extern const std::string_view viewPage, viewStyle, viewListing, viewProgram, viewCards, viewLine,
    viewChanges;

static std::string escaped(const llvm::json::Value &document) {
  std::string text, out;
  llvm::raw_string_ostream(text) << document;
  for (char c : text)
    if (c == '<')
      out += "\\u003c";
    else if (c == '&')
      out += "\\u0026";
    else
      out += c;
  return out;
}

std::string pageOf(const llvm::json::Value &document) {
  std::string page;
  std::string_view rest = viewPage;
  auto insert = [&](std::string_view marker, std::string_view text) {
    const size_t at = rest.find(marker);
    page += rest.substr(0, at);
    page += text;
    rest = at == std::string_view::npos ? "" : rest.substr(at + marker.size());
  };
  insert("/*STYLE*/", viewStyle);
  llvm::json::Object shown = *document.getAsObject();
  const llvm::json::Value changes = std::exchange(shown["changes"], nullptr);
  insert("/*DOCUMENT*/", escaped(std::move(shown)));
  insert("/*CHANGES*/", escaped(changes));
  // The files behind page.js only define what it calls once all of them are read.
  std::string program;
  for (std::string_view file : {viewListing, viewProgram, viewCards, viewLine, viewChanges})
    program += file;
  insert("/*PROGRAM*/", program + "start();\n");
  page += rest;
  return page;
}

} // namespace tk::tkc
