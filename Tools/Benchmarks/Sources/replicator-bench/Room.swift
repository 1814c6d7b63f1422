import Foundation
import Tidemark
import TidemarkSync
import TidemarkSyncServer

/// A server and its devices, in one directory.
final class Room {
  private let path: String
  private let server: StorePeer
  private var devices: [Device] = []

  init(_ directory: String) async throws {
    path = "\(directory)/tidemark-bench-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    server = try await StorePeer(at: path + "/server")
  }

  func device(
    _ name: String, scope: SyncScope = .everything, resolver: ConflictResolver = .localWins,
    compaction: Store.Compaction = .automatic
  ) async throws -> Device {
    let store = try await Store.open(
      at: path + "/" + name, configuration: Store.Configuration(compaction: compaction))
    let peer = CountingPeer(HandlerPeer(server.handler))
    let device = Device(
      store: store, peer: peer,
      replicator: try store.replicator(
        named: "server", peer: peer, scope: scope, resolver: resolver))
    devices.append(device)
    return device
  }

  func close() async {
    for device in devices {
      await device.replicator.stop()
      try? await device.store.close()
    }
    await server.close()
    try? FileManager.default.removeItem(atPath: path)
  }
}

struct Device {
  let store: Store
  let peer: CountingPeer
  let replicator: Replicator

  /// Bytes of the log.
  var bytes: Int { (try? store.status.bytes.log) ?? 0 }
}

/// Counts the calls that go to a peer, and what its pages bring.
final class CountingPeer: Peer {
  private actor Counts {
    var calls = 0
    var entries = 0
    var bytes = 0

    func call() { calls += 1 }

    func take(_ page: PullAnswer) {
      entries += page.entries.count
      bytes += page.entries.reduce(0) { $0 + $1.key.count + $1.content.value.count }
    }
  }

  private let peer: any Peer
  private let counts = Counts()

  init(_ peer: any Peer) { self.peer = peer }

  var calls: Int { get async { await counts.calls } }
  var entries: Int { get async { await counts.entries } }
  var bytes: Int { get async { await counts.bytes } }

  var capabilities: PeerCapabilities { peer.capabilities }

  func hello(_ request: HelloRequest) async throws -> HelloAnswer {
    await counts.call()
    return try await peer.hello(request)
  }

  func push(_ request: PushRequest) async throws -> PushAnswer {
    await counts.call()
    return try await peer.push(request)
  }

  func pull(_ request: PullRequest) async throws -> PullAnswer {
    await counts.call()
    let page = try await peer.pull(request)
    await counts.take(page)
    return page
  }

  func values(_ request: ValuesRequest) async throws -> ValuesAnswer {
    await counts.call()
    return try await peer.values(request)
  }

  func digest(_ request: DigestRequest) async throws -> DigestAnswer {
    await counts.call()
    return try await peer.digest(request)
  }

  func close() async { await peer.close() }
}
