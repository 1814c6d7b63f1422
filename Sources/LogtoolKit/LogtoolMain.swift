internal import ArgumentParser
internal import TidemarkEngine
internal import TidemarkSync

/// The tool as a whole: arguments in, exit status out.
public enum LogtoolMain {
  /// Runs the tool for this process and ends it.
  /// - Parameter openPeer: opens peers at URLs. Nil for the tool that starts fast: it leaves
  ///   commands that need one to the executable `logtool-http` beside it.
  public static func main(openPeer: PeerOpener? = nil) -> Never {
    SystemCalls.installHandlers()
    let console = Console.system()
    console.openPeer = openPeer
    SystemCalls.exit(run(Array(SystemCalls.arguments().dropFirst()), console: console))
  }

  /// Runs the tool.
  /// - Parameters:
  ///   - arguments: without the program's name, byte by byte as they were given.
  ///   - console: where output goes, and where input comes from.
  /// - Returns: the exit status.
  package static func run(_ arguments: [[UInt8]], console: Console) -> Int32 {
    do throws(ToolError) {
      return run(try ArgumentText.decode(arguments), console: console)
    } catch { return report(error, [], console) }
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
      status = report(error, arguments, console)
    }
    do throws(ToolError) { try console.output.flush() } catch {
      if status == 0 { status = report(error, arguments, console) }
    }
    return status
  }

  private static func perform(_ arguments: [String], _ console: Console) throws {
    try CommandNames.check(arguments)
    var command = try Logtool.parseAsRoot(arguments)
    guard let tool = command as? any ToolCommand else { return try command.run() }
    console.settings = tool.global.settings
    if let remote = (tool as? any RemoteCommand)?.remote {
      try remote.checkScheme()
      if remote.isURL, console.openPeer == nil { try console.runHelper(arguments) }
    }
    try tool.run(console)
  }

  /// Says what went wrong.
  private static func report(
    _ error: any Error, _ arguments: [String], _ console: Console
  ) -> Int32 {
    switch error {
    case let error as ToolError:
      if !error.message.isEmpty { console.fail(error.message) }
      return error.status.rawValue
    case let error as TidemarkError:
      console.fail(error.description)
      return (error.peerError.map { ExitStatus($0) } ?? ExitStatus(error)).rawValue
    case let error as PeerError:
      console.fail("the peer: \(error.message)")
      return ExitStatus(error).rawValue
    default: return reportUsage(error, arguments, console)
    }
  }

  /// The argument parser threw: help that was asked for, or arguments it cannot take.
  private static func reportUsage(
    _ error: any Error, _ arguments: [String], _ console: Console
  ) -> Int32 {
    let status = Logtool.exitCode(for: error).rawValue
    guard status != 0 else {
      do throws(ToolError) {
        let columns = max(console.outputColumns, HelpText.leastColumns)
        let text = Logtool.fullMessage(for: error, columns: columns)
        try console.output.line(HelpText.wrappingUsage(text, columns: columns))
        return 0
      } catch { return report(error, arguments, console) }
    }
    let command = CommandNames.command(of: arguments)
    console.fail(HelpText.pointing(Logtool.message(for: error), to: command))
    return status
  }
}
