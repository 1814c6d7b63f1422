internal import ArgumentParser
internal import TidemarkEngine

/// The tool as a whole: arguments in, exit status out.
public enum LogtoolMain {
  /// Runs the tool for this process and ends it.
  public static func main() -> Never {
    SystemCalls.installHandlers()
    SystemCalls.exit(run(Array(SystemCalls.arguments().dropFirst()), console: .system()))
  }

  /// Runs the tool.
  /// - Parameters:
  ///   - arguments: without the program's name, byte by byte as they were given.
  ///   - console: where output goes, and where input comes from.
  /// - Returns: the exit status.
  package static func run(_ arguments: [[UInt8]], console: Console) -> Int32 {
    do throws(ToolError) {
      return run(try ArgumentText.decode(arguments), console: console)
    } catch { return report(error, console) }
  }

  /// Runs the tool.
  /// - Parameters:
  ///   - arguments: without the program's name.
  ///   - console: where output goes, and where input comes from.
  /// - Returns: the exit status.
  package static func run(_ arguments: [String], console: Console) -> Int32 {
    var status: Int32
    do {
      try perform(arguments, console)
      status = ExitStatus.done.rawValue
    } catch {
      status = report(error, console)
    }
    do throws(ToolError) { try console.output.flush() } catch {
      if status == 0 { status = report(error, console) }
    }
    return status
  }

  private static func perform(_ arguments: [String], _ console: Console) throws {
    var command = try Logtool.parseAsRoot(arguments)
    guard let tool = command as? any ToolCommand else { return try command.run() }
    console.settings = tool.global.settings
    try tool.run(console)
  }

  /// Says what went wrong.
  private static func report(_ error: any Error, _ console: Console) -> Int32 {
    switch error {
    case let error as ToolError:
      if !error.message.isEmpty { console.fail(error.message) }
      return error.status.rawValue
    case let error as TidemarkError:
      console.fail(error.description)
      return ExitStatus(error).rawValue
    default: return reportUsage(error, console)
    }
  }

  /// What the argument parser threw: help that was asked for, or arguments it cannot take.
  private static func reportUsage(_ error: any Error, _ console: Console) -> Int32 {
    let status = Logtool.exitCode(for: error).rawValue
    guard status != 0 else {
      do throws(ToolError) {
        try console.output.line(Logtool.fullMessage(for: error))
        return 0
      } catch { return report(error, console) }
    }
    console.fail(Logtool.message(for: error) + "; see logtool --help")
    return status
  }
}
