// SAFETY: the C library gets the addresses of local values, which it fills and does not keep. The
// sources of signals are only held.
import Dispatch
import Foundation

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#endif

/// Standard input and output: a screen that is drawn anew at each key, or the lines of a pipe.
final class Terminal: Sendable {
  /// Whether somebody sits before it.
  let isInteractive = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1
  /// Ends with the input, and when the program is told to end.
  let input: AsyncStream<Input>
  private let before: termios?
  private nonisolated(unsafe) let signals: [any DispatchSourceSignal]

  init() {
    let (stream, continuation) = AsyncStream.makeStream(of: Input.self)
    input = stream
    // So that the store is closed, and the terminal left as it was, before the program ends.
    unsafe signals = [SIGINT, SIGTERM].map { number in
      _ = signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler { continuation.finish() }
      source.activate()
      return source
    }
    before = isInteractive ? Self.takeAllKeys() : nil
    let read = isInteractive ? Self.readKeys : Self.readLines
    Thread.detachNewThread {
      read(continuation)
      continuation.finish()
    }
  }

  /// Shows lines: on a screen in the place of all before, with one below to type in.
  func show(_ lines: [String], typed: String = "") {
    if isInteractive {
      var size = winsize()
      _ = unsafe ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size)
      let (columns, rows) = (max(Int(size.ws_col), 20), max(Int(size.ws_row), 4))
      let shown = lines.prefix(rows - 1).map { "\($0.prefix(columns - 1))\u{1B}[K\n" }.joined()
      write("\u{1B}[H\(shown)\u{1B}[J> \(typed.suffix(columns - 4))")
    } else {
      write(lines.joined(separator: "\n") + "\n")
    }
  }

  /// Leaves the terminal as it was.
  func restore() {
    guard var before else { return }
    _ = unsafe tcsetattr(STDIN_FILENO, TCSANOW, &before)
    write("\n")
  }

  /// Not by `print`: to flush what that holds back would wait for the line that is being read.
  private func write(_ text: String) {
    try? FileHandle.standardOutput.write(contentsOf: Data(text.utf8))
  }

  /// Has keys come one by one, also those that would end the program.
  private static func takeAllKeys() -> termios {
    var before = termios()
    _ = unsafe tcgetattr(STDIN_FILENO, &before)
    var settings = before
    unsafe cfmakeraw(&settings)
    settings.c_oflag |= tcflag_t(OPOST)
    _ = unsafe tcsetattr(STDIN_FILENO, TCSANOW, &settings)
    return before
  }

  private static func readKeys(_ continuation: AsyncStream<Input>.Continuation) {
    var editor = LineEditor()
    var bytes = [UInt8](repeating: 0, count: 256)
    while true {
      let count = unsafe read(STDIN_FILENO, &bytes, bytes.count)
      guard count > 0 else { return }
      for input in editor.take(bytes[..<count]) {
        guard input != .end else { return }
        continuation.yield(input)
      }
    }
  }

  private static func readLines(_ continuation: AsyncStream<Input>.Continuation) {
    while let line = readLine() { continuation.yield(.line(line)) }
  }
}
