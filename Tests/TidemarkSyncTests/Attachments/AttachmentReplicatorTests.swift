import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("Attachments and replicators", .timeLimit(.minutes(20)))
struct AttachmentReplicatorTests {
  private let peer: SwitchedPeer
  private let store: Store
  private let other: Store
  private let film = content(9_000_000)

  init() throws {
    peer = try SwitchedPeer()
    store = try memoryStore()
    other = try memoryStore()
  }

  private func read(_ store: Store, _ key: String) throws -> [UInt8]? {
    guard let reader = try store.attachment(forKey: key) else { return nil }
    return try reader.read(0..<reader.length)
  }

  private func putFilm() async throws {
    let staged = try await store.attach(film)
    try await store.put("film", "1", options: PutOptions(attachment: staged))
  }

  @Test("an attachment goes to the peer, and another store fetches it when it is wanted")
  func onDemand() async throws {
    let replicator = try store.replicator(named: "home", peer: peer)
    try await putFilm()
    try await store.put("note", "1")
    let report = try await replicator.syncOnce()
    #expect(report.applied == 2 && report.attachmentBytesSent == film.count)
    #expect(try read(peer.store, "film") == film)
    let reader = try other.replicator(named: "home", peer: peer)
    _ = try await reader.syncOnce()
    #expect(try other.text("film") == "1" && read(other, "film") == nil)
    let steps = Lock<[AttachmentProgress]>([])
    let fetched = try await reader.fetchAttachment(forKey: "film") { step in
      steps.withLock { $0.append(step) }
    }
    #expect(try fetched?.read(0..<film.count) == film)
    let told = steps.withLock { $0 }
    #expect(told.map(\.received) == told.map(\.received).sorted() && told.count > 2)
    #expect(told.last == AttachmentProgress(received: film.count, length: film.count))
    // The one that is here, or that there is not, needs no peer.
    peer.isOn = false
    #expect(try await reader.fetchAttachment(forKey: "film") != nil)
    #expect(try await reader.fetchAttachment(forKey: "nothing") == nil)
  }

  @Test("a fetch that was cut off, cancelled or failed goes on from what has come")
  func resumedFetch() async throws {
    try await putFilm()
    _ = try await store.replicator(named: "home", peer: peer).syncOnce()
    let reader = try other.replicator(named: "home", peer: peer)
    _ = try await reader.syncOnce()
    let task = Lock<Task<Void, any Error>?>(nil)
    let isKnown = Signal()
    let cut = Task {
      await isKnown.wait(beyond: 0)
      _ = try await reader.fetchAttachment(forKey: "film") { step in
        if step.received > 0 { task.withLock { $0 }?.cancel() }
      }
    }
    task.withLock { $0 = cut }
    isKnown.raise()
    let result = await cut.result
    #expect(throws: TidemarkError.self) { try result.get() }
    peer.set { $0.failures = [PeerError(.unavailable, "gone")] }
    #expect(await code { try await reader.fetchAttachment(forKey: "film") } == .peerFailed)
    peer.set { $0.fetches = [] }
    #expect(try await reader.fetchAttachment(forKey: "film") != nil)
    #expect(try read(other, "film") == film)
    let first = peer.state.withLock { $0.fetches.first?.offset }
    #expect(first ?? 0 > 0)
  }

  @Test("content of a key that holds something else by now is not to be had, and the error says so")
  func changedMeanwhile() async throws {
    try await putFilm()
    let writer = try store.replicator(named: "home", peer: peer)
    _ = try await writer.syncOnce()
    let reader = try other.replicator(named: "home", peer: peer)
    _ = try await reader.syncOnce()
    try await store.put("film", "2")
    _ = try await writer.syncOnce()
    #expect(await code { try await reader.fetchAttachment(forKey: "film") } == .peerFailed)
    _ = try await reader.syncOnce()
    #expect(try await reader.fetchAttachment(forKey: "film") == nil)
  }

  @Test("eager replicators fetch what is small enough before they are done")
  func eager() async throws {
    try await putFilm()
    let photo = try await store.attach(content(100_000, 2))
    try await store.put("photo", "1", options: PutOptions(attachment: photo))
    _ = try await store.replicator(named: "home", peer: peer).syncOnce()
    var configuration = Replicator.Configuration.quick
    configuration.attachments.fetching = .eager(upTo: 1_000_000)
    let reader = try other.replicator(named: "home", peer: peer, configuration: configuration)
    let report = try await reader.syncOnce()
    #expect(report.attachmentBytesTaken == 100_000)
    #expect(try read(other, "photo") == content(100_000, 2) && read(other, "film") == nil)
  }

  @Test("content that goes once it is acknowledged can be fetched back")
  func release() async throws {
    var configuration = Replicator.Configuration.quick
    configuration.attachments.afterUpload = .release
    let replicator = try store.replicator(
      named: "home", peer: peer, configuration: configuration)
    try await putFilm()
    _ = try await replicator.syncOnce()
    #expect(try read(store, "film") == nil)
    #expect(try await replicator.fetchAttachment(forKey: "film") != nil)
    #expect(try read(store, "film") == film)
  }

  @Test("content that another peer is still to get from here is not released")
  func twoPeers() async throws {
    let second = try SwitchedPeer()
    var configuration = Replicator.Configuration.quick
    configuration.attachments.afterUpload = .release
    try await store.put("first", "1")
    let backup = try store.replicator(named: "backup", peer: second)
    _ = try await backup.syncOnce()
    try await putFilm()
    let replicator = try store.replicator(
      named: "home", peer: peer, configuration: configuration)
    _ = try await replicator.syncOnce()
    #expect(try read(store, "film") == film)
    _ = try await backup.syncOnce()
    #expect(try read(second.store, "film") == film)
  }

  @Test("a peer that takes no attachments has them parked, and they go once it takes them")
  func takesNone() async throws {
    peer.set { $0.takesAttachments = false }
    let replicator = try store.replicator(named: "home", peer: peer)
    try await putFilm()
    try await store.put("note", "1")
    let report = try await replicator.syncOnce()
    #expect(report.applied == 1 && report.pending.parked == 1)
    #expect(try await replicator.parked().map(\.rejection.code) == ["attachment"])
    #expect(try peer.text("note") == "1" && peer.text("film") == nil)
    #expect(try read(store, "film") == film)
    peer.set { $0.takesAttachments = true }
    #expect(try await replicator.syncOnce().applied == 1)
    #expect(try read(peer.store, "film") == film)
  }

  @Test("a batch that applies together is parked whole where the peer takes no attachments")
  func together() async throws {
    peer.set { $0.takesAttachments = false }
    let replicator = try store.replicator(named: "home", peer: peer)
    let photo = try await store.attach("content")
    var batch = WriteBatch(atomicAtPeer: true)
    try batch.put("photo", "1", options: PutOptions(attachment: photo))
    try batch.put("index", "1")
    try await store.write(batch)
    let report = try await replicator.syncOnce()
    #expect(report.applied == 0 && report.pending.parked == 2)
    #expect(
      try await replicator.parked().map(\.rejection.code).sorted() == ["aborted", "attachment"])
    #expect(try peer.text("index") == nil)
  }

  @Test("two stores replicate attachments with nothing but directories between them")
  func storePeer() async throws {
    try await putFilm()
    let stick = try StorePeer(try memoryStore())
    _ = try await store.replicator(named: "stick", peer: stick).syncOnce()
    let reader = try other.replicator(named: "stick", peer: stick)
    _ = try await reader.syncOnce()
    #expect(try await reader.fetchAttachment(forKey: "film") != nil)
    #expect(try read(other, "film") == film)
    await stick.close()
  }

  @Test("a budget holds content back with the rest, and a fetch that somebody asks for comes")
  func budget() async throws {
    var configuration = Replicator.Configuration.quick
    configuration.budget = SyncBudget(bytesPerDay: 1_000_000)
    try await putFilm()
    let writer = try store.replicator(named: "home", peer: peer, configuration: configuration)
    let report = try await writer.syncOnce()
    #expect(report.heldBack != nil && report.attachmentBytesSent >= 1_000_000)
    #expect(report.attachmentBytesSent < 3_000_000 && report.pending.entries == 1)
  }
}
