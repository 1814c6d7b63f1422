internal import TidemarkEngine

/// Buffered output of data.
final class Output {
  private static let bufferBytes = 64 << 10
  private let sink: any ByteSink
  /// The bytes that are not written yet. Whoever appends much calls ``drain()`` now and then.
  var bytes: [UInt8] = []

  init(_ sink: any ByteSink) {
    self.sink = sink
    bytes.reserveCapacity(Self.bufferBytes)
  }

  var isTerminal: Bool { sink.isTerminal }
  var columns: Int? { sink.columns }

  func write(_ text: String) throws(ToolError) {
    bytes.append(contentsOf: text.utf8)
    try drain()
  }

  func write(_ data: RawSpan) throws(ToolError) {
    if data.byteCount >= Self.bufferBytes {
      try flush()
      try sink.write(data)
    } else {
      bytes.append(copying: data)
      try drain()
    }
  }

  /// Writes a line.
  func line(_ text: String) throws(ToolError) {
    bytes.append(contentsOf: text.utf8)
    bytes.append(UInt8(ascii: "\n"))
    try drain()
  }

  /// Writes JSON in a line.
  func line(_ value: JSONValue) throws(ToolError) {
    append(value)
    bytes.append(UInt8(ascii: "\n"))
    try drain()
  }

  /// Appends JSON.
  func append(_ value: JSONValue) {
    let start = bytes.count
    bytes += value.bytes
    guard isTerminal, let escaped = TerminalJSON.escaped(bytes[start...]) else { return }
    bytes.replaceSubrange(start..., with: escaped)
  }

  /// Writes whole lines of JSON.
  func write(json lines: [UInt8]) throws(ToolError) {
    if isTerminal, let escaped = TerminalJSON.escaped(lines[...]) {
      try write(escaped.rawSpan)
    } else {
      try write(lines.rawSpan)
    }
  }

  /// Hands on what is there, if that is enough to be worth a call.
  func drain() throws(ToolError) {
    if bytes.count >= Self.bufferBytes { try flush() }
  }

  /// Hands on everything.
  func flush() throws(ToolError) {
    guard !bytes.isEmpty else { return }
    defer { bytes.removeAll(keepingCapacity: true) }
    try sink.write(bytes.rawSpan)
  }
}
