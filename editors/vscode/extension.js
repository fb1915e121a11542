// Starts `tkc lsp` for .tk files.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const command = workspace.getConfiguration("tk").get("path");
  client = new LanguageClient("tk", "tk", { command, args: ["lsp"] },
    { documentSelector: [{ language: "tk" }] });
  return client.start();
};

exports.deactivate = () => client && client.stop();
