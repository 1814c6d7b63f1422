internal import ArgumentParser

/// Prints what shells need to complete the tool's arguments.
struct CompletionsCommand: ToolCommand {
  enum Shell: String, ExpressibleByArgument, CaseIterable { case bash, zsh, fish }

  static let configuration = CommandConfiguration(
    commandName: "completions",
    abstract: "Print the completions of commands, options and paths for a shell.",
    discussion: """
      Examples:
        logtool completions bash > ~/.local/share/bash-completion/completions/logtool
        logtool completions zsh > ~/.zfunc/_logtool    # a directory of $fpath
        logtool completions fish > ~/.config/fish/completions/logtool.fish

      They count in shells that are started afterwards. source <(logtool completions bash) takes \
      them for the running bash alone.
      """)

  @OptionGroup var global: GlobalOptions

  @Argument(help: "The shell: bash, zsh or fish.")
  var shell: Shell

  func run(_ console: Console) throws {
    try console.output.line(script)
  }

  /// The parser's script, with the commands behind `help`, which it leaves out.
  private var script: String {
    let names = CommandNames.visible.joined(separator: " ")
    switch shell {
    case .bash:
      return Logtool.completionScript(for: .bash) + """


        _logtool_help() {
            COMPREPLY+=($(compgen -W '\(names)' -- "${cur}"))
        }
        """
    case .zsh:
      let parts = Logtool.completionScript(for: .zsh).split(
        separator: "'*:subcommands:'", maxSplits: 1)
      return parts.joined(separator: "'*:subcommands:(\(names))'")
    case .fish:
      return Logtool.completionScript(for: .fish) + """

        complete -c 'logtool' -n '__fish_seen_subcommand_from help' -fa '\(names)'
        """
    }
  }
}
