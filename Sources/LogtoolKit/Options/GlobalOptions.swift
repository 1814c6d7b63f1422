internal import ArgumentParser

extension OutputFormat: ExpressibleByArgument {}
extension ColourChoice: ExpressibleByArgument {}

/// Options that every command has.
struct GlobalOptions: ParsableArguments {
  @Option(help: "How results are printed: text, json or jsonl (one JSON value a line).")
  var output = OutputFormat.text

  @Flag(name: .customLong("json"), help: "Short for --output json.")
  var isJSON = false

  @Option(
    name: [.customLong("color"), .customLong("colour")], help: "Colours: auto, always, never.")
  var colour = ColourChoice.auto

  @Flag(name: .shortAndLong, help: "Say nothing but errors and warnings.")
  var quiet = false

  @Flag(name: .customLong("no-progress"), help: "Show no progress.")
  var hidesProgress = false

  @Option(
    name: .customLong("key-file"),
    help: ArgumentHelp(
      "The key of an encrypted store: a file with 32 bytes or 64 hexadecimal digits. May be given "
        + "more than once: the first key is for writing. Without it TIDEMARK_KEY_FILE counts.",
      valueName: "file"),
    completion: .file())
  var keyFiles: [String] = []

  var settings: ConsoleSettings {
    ConsoleSettings(
      format: isJSON ? .json : output, colour: colour, isQuiet: quiet,
      wantsProgress: !hidesProgress,
      keyFiles: keyFiles)
  }
}
