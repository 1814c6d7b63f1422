import Foundation
import Testing
import Tidemark
import TidemarkSyncServer
import TidemarkTestKit

@testable import TidemarkHTTP

/// How fast batches go over sockets, or to the server of `TIDEMARK_SYNC_URL`:
/// `TIDEMARK_BENCH=1 swift test -c release -Xswiftc -enable-testing --filter HTTPBench`.
@Suite(
  "Speed over sockets", .enabled(if: ProcessInfo.processInfo.environment["TIDEMARK_BENCH"] == "1"))
struct HTTPBench {
  @Test("batches of 4,000 entries there and back", arguments: Transports.all)
  func speed(transport: Transports) async throws {
    let directory = FileManager.default.temporaryDirectory
      .appendingPathComponent("tidemark-bench-\(UUID())")
    defer { try? FileManager.default.removeItem(at: directory) }
    let handler = try SyncHandler(at: directory.path)
    let routes = SyncRoutes(handler)
    let server = try SocketServer(routes.serve)
    defer { server.stop() }
    let running = ProcessInfo.processInfo.environment["TIDEMARK_SYNC_URL"]
    let url = running.map { "\($0)/bench-\(UUID().uuidString.lowercased())" }
    let peer = try HTTPPeer(url ?? "\(server.url)/notes", transport: transport.make())
    let replica = ReplicaID(text: "00112233445566778899aabbccddeeff")
    _ = try await peer.hello(HelloRequest(replica: replica))
    let (batches, size) = (UInt64(50), UInt64(4000))
    var requests: [PushRequest] = []
    for number in 1...batches {
      let changes = (0..<size).map { index in
        let sequence = (number - 1) * size + index + 1
        return PushedChange(
          sequence: sequence, kind: .put, key: Array("package/\(sequence)".utf8),
          content: SyncContent(value: Array("version \(sequence * 7919) of a thing".utf8)),
          commitTime: (1_767_225_600_000 + sequence) << 16)
      }
      requests.append(
        PushRequest(replica: replica, number: number, batchID: BatchID(number), changes: changes))
    }
    let clock = ContinuousClock()
    let handling = try clock.measure {
      _ = try SyncHandlerBench.push(requests)
    }
    let pushing = try await clock.measure {
      for request in requests { _ = try await peer.push(request) }
    }
    let reader = ReplicaID(text: "ffeeddccbbaa99887766554433221100")
    var (cursor, count) = (FeedPosition.beginning, 0)
    let pulling = try await clock.measure {
      while true {
        let page = try await peer.pull(PullRequest(replica: reader, after: cursor))
        count += page.entries.count
        cursor = page.cursor
        if cursor.offset >= page.range.head { break }
      }
    }
    let small = try await clock.measure {
      for _ in 0..<200 { _ = try await peer.hello(HelloRequest(replica: replica)) }
    }
    let total = Double(batches * size)
    func rate(_ time: Duration) -> Int { Int(total / (time / .seconds(1))) }
    print(
      "\(transport): push \(rate(pushing))/s (handler alone \(rate(handling))/s),",
      "pull \(rate(pulling))/s, a call \(small / 200)")
    #expect(count == Int(batches * size))
    await peer.close()
    try handler.close()
  }
}

/// The same without sockets.
enum SyncHandlerBench {
  static func push(_ requests: [PushRequest]) throws -> Int {
    let directory = FileManager.default.temporaryDirectory
      .appendingPathComponent("tidemark-bench-\(UUID())")
    defer { try? FileManager.default.removeItem(at: directory) }
    let handler = try SyncHandler(at: directory.path)
    if let first = requests.first { _ = try handler.hello(HelloRequest(replica: first.replica)) }
    for request in requests { _ = try handler.push(request) }
    try handler.close()
    return requests.count
  }
}
