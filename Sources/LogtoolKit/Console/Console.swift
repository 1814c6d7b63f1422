package import Tidemark
internal import TidemarkEngine
public import TidemarkSync

/// Opens the peer at a URL.
/// - Parameters:
///   - url: `http` or `https`.
///   - token: what the peer is to take for authorization, if there is any.
public typealias PeerOpener =
  @Sendable (_ url: String, _ token: String?) async throws -> any Peer

/// Everything that a command has to do with the world besides its store.
package final class Console {
  /// Data goes here.
  let output: Output
  /// Talk goes here.
  private let errors: any ByteSink
  /// The input that `-` reads from.
  let input: @Sendable () throws(ToolError) -> InputStream
  /// Variables of the environment.
  let environment: @Sendable (String) -> String?
  /// The disk, the clocks and the chance that stores are opened on.
  let storeEnvironment: Store.Environment
  /// Where the time comes from.
  var clock: any WallClock { storeEnvironment.clock }
  /// Asked between batches: whether the user wants to stop.
  let isInterrupted: @Sendable () -> Bool
  /// Called by commands that look at ``isInterrupted``.
  let stopGracefully: @Sendable () -> Void
  /// Opens peers at URLs; nil where another executable does it.
  package var openPeer: PeerOpener?
  /// Replaces the process by the tool that can speak to URLs; returns only to throw.
  package var runHelper: ([String]) throws -> Void = { try HelperTool.run($0) }
  /// Set from the command's options before it runs.
  var settings = ConsoleSettings()

  package init(
    output: any ByteSink, errors: any ByteSink,
    input: @escaping @Sendable () throws(ToolError) -> InputStream = { () throws(ToolError) in
      InputStream.standard()
    },
    environment: @escaping @Sendable (String) -> String? = { SystemCalls.environment($0) },
    storeEnvironment: Store.Environment = Store.Environment(),
    isInterrupted: @escaping @Sendable () -> Bool = { SystemCalls.isInterrupted },
    stopGracefully: @escaping @Sendable () -> Void = { SystemCalls.stopGracefully() }
  ) {
    self.output = Output(output)
    self.errors = errors
    self.input = input
    self.environment = environment
    self.storeEnvironment = storeEnvironment
    self.isInterrupted = isInterrupted
    self.stopGracefully = stopGracefully
  }

  /// The process's own streams.
  package static func system() -> Console {
    Console(
      output: DescriptorSink(1, name: "the standard output"),
      errors: DescriptorSink(2, name: "the standard error"))
  }

  /// Says something to the user, unless they asked for quiet.
  func say(_ text: String) {
    if !settings.isQuiet { talk(text) }
  }

  /// Warns the user; also when they asked for quiet.
  func warn(_ text: String) {
    talk(paint("logtool: warning:", .yellow, onErrors: true) + " \(shown(text))")
  }

  /// Says why the command ends.
  func fail(_ message: String) {
    let line = message.split(whereSeparator: \.isNewline).joined(separator: " ")
    talk(paint("logtool:", .red, onErrors: true) + " \(shown(line))")
  }

  private func talk(_ text: String) {
    writeError((errors.isTerminal ? HelpText.wrapped(text, columns: columns) : text) + "\n")
  }

  /// Words for the output, where a terminal would break within them broken between them.
  /// - Parameter indent: of the lines behind the first one.
  func prose(_ text: String, indent: Int = 2) -> String {
    output.isTerminal ? HelpText.wrapped(text, columns: outputColumns, indent: indent) : text
  }

  /// Names of files, which errors repeat, may hold anything.
  private func shown(_ text: String) -> String {
    errors.isTerminal ? HumanText.escaped(Array(text.utf8), keepingBackslashes: true) : text
  }

  /// Whether somebody sees the talk as it comes, on a screen that can redraw a line.
  var showsProgress: Bool {
    errors.isTerminal && !settings.isQuiet && settings.wantsProgress
      && environment("TERM") != "dumb"
  }

  /// The width of the terminal that the talk goes to.
  var columns: Int { errors.columns ?? 80 }

  /// The width that text for people is to have: what the user says, or that of the terminal.
  var outputColumns: Int {
    environment("COLUMNS").flatMap { Int($0) } ?? output.columns ?? 80
  }

  func writeError(_ text: String) {
    // On one screen what comes later stands below.
    if output.isTerminal { try? output.flush() }
    // There is nobody to tell that the talk cannot be written.
    try? errors.write(Array(text.utf8).rawSpan)
  }

  /// Colours a text, where that is wanted.
  func paint(_ text: String, _ colour: Colour, onErrors: Bool = false) -> String {
    let isTerminal = onErrors ? errors.isTerminal : output.isTerminal
    guard usesColour(isTerminal: isTerminal) else { return text }
    return "\u{1b}[\(colour.rawValue)m\(text)\u{1b}[0m"
  }

  private func usesColour(isTerminal: Bool) -> Bool {
    switch settings.colour {
    case .always: return true
    case .never: return false
    case .auto: break
    }
    if let forced = environment("CLICOLOR_FORCE"), forced != "0", !forced.isEmpty { return true }
    if let none = environment("NO_COLOR"), !none.isEmpty { return false }
    return isTerminal && environment("TERM") != "dumb"
  }
}

/// Colours, by their numbers in ECMA-48.
enum Colour: Int {
  case bold = 1
  case dim = 2
  case red = 31
  case green = 32
  case yellow = 33
}

/// The settings that the user asked for in general.
struct ConsoleSettings {
  var format = OutputFormat.text
  var colour = ColourChoice.auto
  var isQuiet = false
  var wantsProgress = true
  /// Where the keys of an encrypted store are.
  var keyFiles: [String] = []
}
