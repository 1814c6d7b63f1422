internal import ArgumentParser

/// A command of the tool.
protocol ToolCommand: ParsableCommand {
  var global: GlobalOptions { get }
  /// Does the work. Errors become the exit status and one line for the user.
  func run(_ console: Console) throws
}

extension ToolCommand {
  func run() throws { try run(.system()) }
}
