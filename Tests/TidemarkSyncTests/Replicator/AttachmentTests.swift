import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync

@Suite("Attachments and peers", .timeLimit(.minutes(20)))
struct AttachmentReplicationTests {
  private let peer: SwitchedPeer
  private let store: Store

  init() throws {
    peer = try SwitchedPeer()
    store = try memoryStore()
  }

  @Test("an entry with an attachment is parked with the reason and stays whole, others go")
  func parked() async throws {
    let replicator = try store.replicator(named: "home", peer: peer)
    let photo = try await store.attach("content")
    try await store.put("photo", "1", options: PutOptions(attachment: photo))
    try await store.put("note", "1")
    let report = try await replicator.syncOnce()
    #expect(report.applied == 1 && report.pending.parked == 1)
    #expect(try await replicator.parked().map(\.rejection.code) == ["attachment"])
    #expect(try peer.text("note") == "1" && peer.text("photo") == nil)
    #expect(try store.attachment(forKey: "photo") != nil)
    // Without it the entry goes.
    try await store.put("photo", "2")
    #expect(try await replicator.syncOnce().applied == 1)
    #expect(try peer.text("photo") == "2")
  }

  @Test("a batch that applies together is parked whole when one entry has an attachment")
  func together() async throws {
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
}
