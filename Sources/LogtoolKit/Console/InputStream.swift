internal import TidemarkEngine

/// A file, pipe or terminal that is read from its beginning to its end.
package final class InputStream: Sendable {
  /// The name that messages call it.
  let name: String
  /// The length of a file; nil for what has none.
  let length: Int?
  private let source: Source

  private enum Source {
    case descriptor(Int32, closes: Bool)
    /// The bytes that are left to be read.
    case memory(Lock<ArraySlice<UInt8>>)
  }

  private init(_ source: Source, name: String, length: Int?) {
    self.source = source
    self.name = name
    self.length = length
  }

  deinit {
    if case .descriptor(let descriptor, closes: true) = source { SystemCalls.close(descriptor) }
  }

  /// Bytes in memory, for tests.
  package static func memory(_ bytes: [UInt8], name: String = "standard input") -> InputStream {
    InputStream(.memory(Lock(bytes[...])), name: name, length: bytes.count)
  }

  /// The process's standard input.
  package static func standard() -> InputStream {
    InputStream(
      .descriptor(0, closes: false), name: "standard input", length: SystemCalls.inspect(0).length)
  }

  /// Opens a file.
  package static func open(_ path: String) throws(ToolError) -> InputStream {
    let descriptor: Int32
    do throws(SystemCalls.Failure) { descriptor = try SystemCalls.open(path) } catch {
      let status: ExitStatus =
        switch error.number {
        case ErrorNumber.noEntry, ErrorNumber.notADirectory: .failed
        case ErrorNumber.accessDenied, ErrorNumber.notPermitted: .noPermission
        default: .inputOutput
        }
      throw ToolError(status, "cannot read \(path): \(error.reason); check the path")
    }
    let (length, isDirectory) = SystemCalls.inspect(descriptor)
    guard !isDirectory else {
      SystemCalls.close(descriptor)
      throw ToolError(.failed, "\(path) is a directory; give a file, or - for standard input")
    }
    return InputStream(.descriptor(descriptor, closes: true), name: path, length: length)
  }

  /// Appends what comes next.
  /// - Parameters:
  ///   - count: how many bytes at most.
  ///   - isCancelled: asked ten times a second while nothing comes.
  /// - Returns: false at the end, and when cancelled.
  func read(
    _ count: Int, into bytes: inout [UInt8], isCancelled: () -> Bool = { false }
  ) throws(ToolError) -> Bool {
    let descriptor: Int32
    switch source {
    case .memory(let rest):
      return rest.withLock { rest in
        let piece = rest.prefix(count)
        rest = rest.dropFirst(count)
        bytes.append(contentsOf: piece)
        return !piece.isEmpty
      }
    case .descriptor(let number, _): descriptor = number
    }
    if length == nil {
      while !SystemCalls.waitForInput(on: descriptor, milliseconds: 100) {
        if isCancelled() { return false }
      }
    }
    do throws(SystemCalls.Failure) {
      return try SystemCalls.read(count, from: descriptor, into: &bytes)
    } catch {
      throw ToolError(.inputOutput, "cannot read \(name): \(error.reason)")
    }
  }

  /// Everything up to the end.
  /// - Parameter limit: more bytes are an error.
  func readAll(atMost limit: Int) throws(ToolError) -> [UInt8] {
    var bytes: [UInt8] = []
    while try read(64 << 10, into: &bytes) {
      guard bytes.count <= limit else {
        throw ToolError(.usage, "\(name) holds more than \(limit) bytes; give less")
      }
    }
    return bytes
  }
}
