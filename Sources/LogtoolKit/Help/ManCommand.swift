internal import ArgumentParser

/// Prints the tool's page of the manual.
struct ManCommand: ToolCommand {
  static let configuration = CommandConfiguration(
    commandName: "man",
    abstract: "Print the page of the manual, made from the help.",
    discussion: """
      Example:
        logtool man > logtool.1 && man ./logtool.1
      """,
    shouldDisplay: false)

  @OptionGroup var global: GlobalOptions

  func run(_ console: Console) throws {
    try console.output.write(ManualPage.text())
  }
}
