/// Splits a stream of server-sent events (HTML standard, 9.2) into events, whichever way its bytes
/// are cut, and with little memory.
package struct ServerEventParser: Sendable {
  /// An event.
  package struct Event: Sendable, Hashable {
    /// The name in the field `event`; empty when there was none.
    package var name: [UInt8] = []
    /// The fields `data`, with a line feed between two.
    package var data: [UInt8] = []
    /// The last `id` so far.
    package var id: [UInt8] = []
  }

  /// Longest line, and most bytes of an event.
  package static let defaultLimit = 16_384

  private let limit: Int
  private var line: [UInt8] = []
  private var event = Event()
  private var hasData = false
  /// The last byte was a carriage return: a line feed behind it is part of the same end.
  private var endedWithReturn = false
  private var isFirstLine = true

  /// A parser at the beginning of a stream.
  /// - Parameter limit: longest line, and most bytes of an event.
  package init(limit: Int = defaultLimit) { self.limit = max(16, limit) }

  /// Takes bytes.
  /// - Parameter body: is called with every event that ends in them.
  /// - Throws: ``PeerError`` of kind `malformed` for lines and events that are too long; the parser
  ///   is of no use then.
  package mutating func feed(
    _ bytes: some Sequence<UInt8>, _ body: (Event) -> Void
  ) throws(PeerError) {
    for byte in bytes {
      switch byte {
      case 0x0a where endedWithReturn: endedWithReturn = false
      case 0x0a, 0x0d:
        endedWithReturn = byte == 0x0d
        try endLine(body)
      default:
        endedWithReturn = false
        guard line.count < limit else {
          throw PeerError(.malformed, "a line of an event has more than \(limit) bytes")
        }
        line.append(byte)
      }
    }
  }

  private mutating func endLine(_ body: (Event) -> Void) throws(PeerError) {
    defer { line.removeAll(keepingCapacity: true) }
    if isFirstLine {
      isFirstLine = false
      if line.starts(with: [0xef, 0xbb, 0xbf]) { line.removeFirst(3) }
    }
    if line.isEmpty {
      if hasData { body(event) }
      event = Event(id: event.id)
      hasData = false
      return
    }
    let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.endIndex
    // A line that begins with a colon is a comment: the heartbeat.
    if colon == 0 { return }
    var value = line[min(colon + 1, line.endIndex)...]
    if value.first == 0x20 { value = value.dropFirst() }
    switch String(decoding: line[..<colon], as: UTF8.self) {
    case "event": event.name = Array(value)
    case "id": if !value.contains(0) { event.id = Array(value) }
    case "data":
      guard event.data.count + value.count < limit else {
        throw PeerError(.malformed, "an event has more than \(limit) bytes")
      }
      if hasData { event.data.append(0x0a) }
      event.data.append(contentsOf: value)
      hasData = true
    default: break
    }
  }
}
