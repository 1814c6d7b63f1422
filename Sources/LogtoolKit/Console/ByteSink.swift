internal import TidemarkEngine

/// Where the tool's output goes: a descriptor, or memory in tests.
package protocol ByteSink: AnyObject {
  /// Whether a person reads along.
  var isTerminal: Bool { get }
  /// The width of the terminal in columns; nil when there is none.
  var columns: Int? { get }
  /// Takes all bytes.
  func write(_ bytes: RawSpan) throws(ToolError)
}

/// An open file, pipe or terminal.
final class DescriptorSink: ByteSink {
  private let descriptor: Int32
  private let name: String
  let isTerminal: Bool

  init(_ descriptor: Int32, name: String) {
    self.descriptor = descriptor
    self.name = name
    isTerminal = SystemCalls.isTerminal(descriptor)
  }

  var columns: Int? { isTerminal ? SystemCalls.columns(of: descriptor) : nil }

  func write(_ bytes: RawSpan) throws(ToolError) {
    do throws(SystemCalls.Failure) {
      try SystemCalls.write(bytes, to: descriptor)
    } catch {
      if error == .closedPipe { throw .outputClosed }
      throw ToolError(
        .inputOutput, "cannot write to \(name): \(error.reason); free space or give another place")
    }
  }
}

/// A file that is written anew, and closed when nobody has it any more.
final class OutputFile {
  private let descriptor: Int32
  private let sink: DescriptorSink

  /// - Throws: why the file cannot be written.
  init(_ path: String) throws(ToolError) {
    do throws(SystemCalls.Failure) {
      descriptor = try SystemCalls.create(path)
    } catch {
      throw ToolError(.inputOutput, "cannot write to \(path): \(error.reason)")
    }
    sink = DescriptorSink(descriptor, name: path)
  }

  deinit { SystemCalls.close(descriptor) }

  func write(_ bytes: RawSpan) throws(ToolError) { try sink.write(bytes) }
}

/// Memory, for tests.
package final class MemorySink: ByteSink {
  package private(set) var bytes: [UInt8] = []
  package let isTerminal: Bool
  package var columns: Int? { isTerminal ? 80 : nil }

  package init(isTerminal: Bool = false) { self.isTerminal = isTerminal }

  package func write(_ bytes: RawSpan) throws(ToolError) { self.bytes.append(copying: bytes) }

  /// The bytes that were written, as text.
  package var text: String { String(decoding: bytes, as: UTF8.self) }
}
