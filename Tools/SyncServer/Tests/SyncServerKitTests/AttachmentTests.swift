import SyncServerKit
import Testing
import Tidemark
import TidemarkSyncServer

@Suite("Attachments")
struct AttachmentTests {
  private let me = ReplicaID.test(1)
  private let content = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 7 >> 2) }

  private func film() async throws -> AttachmentReference {
    // The hash is what a store makes of the content.
    var found: AttachmentReference?
    try await TestServer.inDirectory { directory in
      let store = try await Store.open(at: directory + "/store")
      found = try await store.attach(content).reference
      try await store.close()
    }
    return try #require(found)
  }

  private func attach(
    _ server: TestServer, _ film: AttachmentReference, _ range: Range<Int>
  ) async throws -> WireMessage {
    try await server.call(
      .attachRequest(
        AttachRequest(
          replica: me, key: [1], attachment: film, offset: range.lowerBound,
          bytes: Array(content[range])))
    ).answer
  }

  @Test("content goes to the server in parts, and comes back to who may read its entry")
  func bothWays() async throws {
    let film = try await film()
    try await TestServer.run { server in
      guard
        case .helloAnswer(let hello) = try await server.call(
          .helloRequest(HelloRequest(replica: me))
        ).answer,
        case .attachAnswer(let first) = try await attach(server, film, 0..<131_072),
        case .attachAnswer(let last) = try await attach(server, film, 131_072..<200_000)
      else { throw Unexpected() }
      #expect(hello.attachmentBytes == 4 << 30)
      #expect(first.received == 131_072 && last.received == 200_000)
      let change = PushedChange(
        sequence: 1, kind: .put, key: [1], content: SyncContent(attachment: film), commitTime: 1)
      let push = PushRequest(replica: me, number: 1, batchID: BatchID(1), changes: [change])
      guard
        case .pushAnswer(let answer) = try await server.call(.pushRequest(push)).answer,
        case .fetchAnswer(let part) = try await server.call(
          .fetchRequest(
            ContentRequest(replica: .test(2), key: [1], attachment: film, offset: 9, limit: 100))
        ).answer
      else { throw Unexpected() }
      #expect(answer.mark.number == 1 && part.bytes == Array(content[9..<109]))
    }
  }

  @Test("content beyond the limit is refused, and a server that takes none does not say it does")
  func limits() async throws {
    let film = AttachmentReference(sha256: [UInt8](repeating: 1, count: 32), length: 1 << 30)
    try await TestServer.run({ $0.handler.attachmentBytes = 1_000 }) { server in
      guard case .attachAnswer(let answer) = try await attach(server, film, 0..<0) else {
        throw Unexpected()
      }
      #expect(answer.rejection?.code == "tooLarge")
    }
    try await TestServer.run({ $0.handler.attachmentBytes = 0 }) { server in
      guard
        case .helloAnswer(let hello) = try await server.call(
          .helloRequest(HelloRequest(replica: me))
        ).answer
      else { throw Unexpected() }
      #expect(hello.attachmentBytes == nil)
    }
  }

  @Test("uploads beyond their number are told to come again")
  func uploads() async throws {
    let film = try await film()
    let other = AttachmentReference(sha256: [UInt8](repeating: 1, count: 32), length: 200_000)
    try await TestServer.run({ $0.handler.attachmentUploads = 1 }) { server in
      _ = try await attach(server, film, 0..<65_536)
      guard case .error(let error) = try await attach(server, other, 0..<65_536) else {
        throw Unexpected()
      }
      #expect(error.kind == .busy && error.retryAfter != nil)
    }
  }
}
