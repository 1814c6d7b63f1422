import Logging
import ServiceLifecycle
import Synchronization
import SyncServerKit
import Testing
import Tidemark
import TidemarkSyncServer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#endif

/// A server over a directory of its own, with a client.
struct TestServer: Sendable {
  let port: Int
  let directory: String
  private let group: ServiceGroup
  let server: SyncServer

  /// Runs `body` with a server in an empty directory, and ends that in order.
  static func run(
    _ change: (inout ServerOptions) -> Void = { _ in },
    _ body: (TestServer) async throws -> Void
  ) async throws {
    try await inDirectory { try await run(in: $0, change, body) }
  }

  /// Runs `body` with an empty directory, which is gone afterwards.
  static func inDirectory(_ body: (String) async throws -> Void) async throws {
    let directory = try makeDirectory()
    defer { removeDirectory(directory) }
    try await body(directory)
  }

  /// Runs `body` with a server in a directory.
  static func run(
    in directory: String, _ change: (inout ServerOptions) -> Void = { _ in },
    _ body: (TestServer) async throws -> Void
  ) async throws {
    var options = ServerOptions(dataDirectory: directory)
    options.port = 0
    // No pull ends by itself while a busy machine gets to what it waits for.
    options.limits.wait = .seconds(600)
    change(&options)
    var logger = Logger(label: "test")
    logger.logLevel = .critical
    let (ports, source) = AsyncStream.makeStream(of: Int.self)
    let server = try await SyncServer(options, logger: logger) { source.yield($0) }
    let group = ServiceGroup(services: [server], logger: logger)
    try await withThrowingTaskGroup(of: Void.self) { tasks in
      tasks.addTask {
        defer { source.finish() }
        try await group.run()
      }
      var iterator = ports.makeAsyncIterator()
      guard let port = await iterator.next() else {
        try await tasks.waitForAll()
        return
      }
      do {
        try await body(
          TestServer(port: port, directory: directory, group: group, server: server))
      } catch {
        await group.triggerGracefulShutdown()
        throw error
      }
      await group.triggerGracefulShutdown()
      try await tasks.waitForAll()
    }
  }

  /// Begins to end the server.
  func shutDown() async { await group.triggerGracefulShutdown() }

  /// Takes other tokens.
  func replaceTokens(_ text: String) throws { try server.replaceTokens(text) }

  /// Takes other keys for web tokens.
  func replaceWebTokenKeys(secret: [UInt8]?) throws {
    var settings = WebTokenSettings()
    settings.secret = secret
    try server.replaceWebTokenKeys(settings)
  }

  /// Makes one request on a connection of its own.
  func request(
    _ method: String, _ path: String, _ fields: [(String, String)] = [], body: [UInt8]? = nil
  ) async throws -> RawConnection.Answer {
    try await RawConnection.open(to: port) { connection in
      try await connection.request(method, path, fields, body: body)
      return try await connection.answer()
    }
  }

  /// Makes a call, in frames or as JSON.
  func call(
    _ message: WireMessage, in database: String = "notes", asJSON: Bool = false,
    token: String? = nil
  ) async throws -> (status: Int, answer: WireMessage) {
    let coder = WireCoder()
    var fields = [("Content-Type", asJSON ? "application/json" : WireFrame.contentType)]
    if let token { fields.append(("Authorization", "Bearer \(token)")) }
    let answer = try await request(
      "POST", "/\(database)/v1/\(message.kind.name)", fields,
      body: asJSON ? try coder.encodeJSON(message) : try coder.encode(message))
    #expect(answer.fields["content-type"] == fields[0].1)
    return (
      answer.status,
      asJSON ? try coder.decodeJSON(answer.body) : try coder.decode(answer.body)
    )
  }

  private static func makeDirectory() throws -> String {
    var template = Array("/tmp/tidemark-server-test.XXXXXX".utf8CString)
    let path = template.withUnsafeMutableBufferPointer { $0.baseAddress.flatMap { mkdtemp($0) } }
    return String(cString: try #require(path))
  }

  private static func removeDirectory(_ path: String) {
    if let directory = opendir(path) {
      while let entry = readdir(directory) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
          $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != ".", name != ".." { removeDirectory(path + "/" + name) }
      }
      closedir(directory)
    }
    _ = remove(path)
  }
}

extension PushRequest {
  /// A batch of puts.
  static func puts(
    _ keys: [String], by replica: ReplicaID, number: UInt64 = 1, labels: [String] = []
  ) -> PushRequest {
    PushRequest(
      replica: replica, number: number, batchID: BatchID(number &* 7919 | 1),
      changes: keys.enumerated().map { index, key in
        PushedChange(
          sequence: number * 1000 + UInt64(index), kind: .put, key: Array(key.utf8),
          content: SyncContent(
            value: Array("value of \(key)".utf8), labels: labels.map { EntryLabel($0) }),
          commitTime: 1_700_000_000_000 << 16)
      })
  }
}

extension ReplicaID {
  /// One that is all the same bytes.
  static func test(_ byte: UInt8) -> ReplicaID {
    let bytes = [UInt8](repeating: byte, count: ReplicaID.byteCount)
    guard let replica = ReplicaID(bytes) else { preconditionFailure() }
    return replica
  }
}

extension WireMessage {
  /// The kind of the error; nil for none.
  var errorKind: PeerError.Kind? { if case .error(let error) = self { error.kind } else { nil } }
}
