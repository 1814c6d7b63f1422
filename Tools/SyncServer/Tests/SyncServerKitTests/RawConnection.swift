import NIOCore
import NIOPosix

/// A connection of a client that says exactly what a test wants it to.
struct RawConnection {
  private let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
  private var inbound: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
  private var received: [UInt8] = []
  let channel: any Channel

  /// The answer of a server.
  struct Answer {
    var status: Int
    /// By lower-case name.
    var fields: [String: String]
    var body: [UInt8]

    var text: String { String(decoding: body, as: UTF8.self) }
  }

  struct Closed: Error {}

  /// Runs `body` with a connection to a port of this machine.
  static func open<R: Sendable>(
    to port: Int, _ body: (inout RawConnection) async throws -> R
  ) async throws -> R {
    let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .connect(host: "127.0.0.1", port: port) { channel in
        channel.eventLoop.makeCompletedFuture {
          try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
        }
      }
    return try await channel.executeThenClose { inbound, outbound in
      var connection = RawConnection(
        outbound: outbound, inbound: inbound.makeAsyncIterator(), channel: channel.channel)
      return try await body(&connection)
    }
  }

  private init(
    outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>,
    inbound: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator, channel: any Channel
  ) {
    self.outbound = outbound
    self.inbound = inbound
    self.channel = channel
  }

  func send(_ text: String) async throws { try await outbound.write(ByteBuffer(string: text)) }
  func send(_ bytes: [UInt8]) async throws { try await outbound.write(ByteBuffer(bytes: bytes)) }

  /// Sends a whole request.
  func request(
    _ method: String, _ path: String, _ fields: [(String, String)] = [], body: [UInt8]? = nil
  ) async throws {
    var head = "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\n"
    for (name, value) in fields { head += "\(name): \(value)\r\n" }
    if let body { head += "Content-Length: \(body.count)\r\n" }
    try await send(Array((head + "\r\n").utf8) + (body ?? []))
  }

  /// Reads until a text has come.
  /// - Returns: everything up to its end.
  mutating func read(through text: String) async throws -> String {
    let end = Array(text.utf8)
    while true {
      if let place = received.firstRange(of: end) {
        let found = received[..<place.upperBound]
        received.removeFirst(found.count)
        return String(decoding: found, as: UTF8.self)
      }
      try await more()
    }
  }

  /// Reads an answer; informational ones are passed over.
  mutating func answer() async throws -> Answer {
    let lines = try await read(through: "\r\n\r\n").split(separator: "\r\n")
    let status = Int(lines[0].split(separator: " ")[1]) ?? 0
    if status == 100 { return try await answer() }
    var answer = Answer(status: status, fields: [:], body: [])
    for line in lines.dropFirst() {
      let parts = line.split(separator: ":", maxSplits: 1)
      answer.fields[parts[0].lowercased()] = String(parts[1].drop { $0 == " " })
    }
    let count = answer.fields["content-length"].flatMap { Int($0) } ?? 0
    while received.count < count { try await more() }
    answer.body = Array(received[..<count])
    received.removeFirst(count)
    return answer
  }

  /// Whether the server closes without saying more.
  mutating func isClosed() async -> Bool {
    do {
      try await more()
      return false
    } catch { return true }
  }

  private mutating func more() async throws {
    guard let buffer = try await inbound.next() else { throw Closed() }
    received += Array(buffer.readableBytesView)
  }
}
