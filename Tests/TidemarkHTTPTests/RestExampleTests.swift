import Foundation
import RestExample
import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkREST
@testable import TidemarkSync
@testable import TidemarkSyncProtocol

/// The example of a plain REST back end, a script of Python's standard library.
@Suite("The example of a REST back end")
struct RestExampleTests {
  private func settle(_ session: SyncSession, _ peer: RequestPeer) async throws {
    session.disconnect()
    for _ in 0..<1000 {
      guard let call = try session.next() else { return }
      try session.receive(try await peer.answer(to: call))
    }
    Issue.record("no end of calls")
  }

  private func engine(_ seed: UInt64) throws -> Engine {
    try Engine.open(
      "/store", configuration: .campaign,
      environment: EngineEnvironment(
        fileSystem: SimulatedFileSystem(seed: seed), clock: ManualClock(),
        random: SeededRandom(seed: seed)))
  }

  private func put(_ engine: Engine, _ key: [UInt8], _ value: [UInt8]) throws {
    var batch = OperationBatch()
    try batch.add(
      .put, key: key.rawSpan, value: value.rawSpan, labelSet: batch.addLabelSet([[0x6c]]))
    try engine.commit(batch)
  }

  private func value(_ engine: Engine, _ key: [UInt8]) throws -> [UInt8]? {
    try engine.reader.withValue(forKey: key.rawSpan) { (value, _) throws(TidemarkError) in
      [UInt8](copying: value)
    }
  }

  @Test("two stores meet there, also after it was killed", arguments: Transports.all)
  func roundTrip(transport: Transports) async throws {
    let file = FileManager.default.temporaryDirectory
      .appendingPathComponent("tidemark-rest-\(UUID()).jsonl")
    defer { try? FileManager.default.removeItem(at: file) }
    var script = try RestScript(file: file)
    let (a, b) = (try engine(1), try engine(2))
    let back = RestBackEnd(url: script.url, name: "rest", transport: transport.make())
    let (pa, pb) = (back.peer(), back.peer())
    let sa = try SyncSession(ReplicationLog(a), name: "rest", capabilities: pa.capabilities)
    let sb = try SyncSession(ReplicationLog(b), name: "rest", capabilities: pb.capabilities)
    for number in UInt8(0)..<150 { try put(a, [0xff, number], [number, 0, 0xfe]) }
    try put(a, [1], [UInt8](repeating: 1, count: 80_000))
    try await settle(sa, pa)
    try await settle(sb, pb)
    #expect(try value(b, [0xff, 149]) == [149, 0, 0xfe] && value(b, [0xff, 0]) == [0, 0, 0xfe])
    #expect(sa.totals.parked == 1 && sa.totals.applied == 150)
    #expect(try value(b, [1]) == nil)
    await pb.close()

    script.stop()
    try put(a, [0xff, 7], [42])
    await #expect(throws: PeerError.self) { try await settle(sa, pa) }
    script = try RestScript(file: file)
    defer { script.stop() }
    let again = RestBackEnd(url: script.url, name: "rest", transport: transport.make())
    // As after a restart of both programs: new peers that remember nothing.
    try await settle(sa, again.peer())
    try await settle(sb, again.peer())
    #expect(try value(b, [0xff, 7]) == [42])
    #expect(sb.totals.pulled == 151)
  }

  @Test("notes get ids there, and both stores edit and delete them by these")
  func notes() async throws {
    let file = FileManager.default.temporaryDirectory
      .appendingPathComponent("tidemark-notes-\(UUID()).jsonl")
    defer { try? FileManager.default.removeItem(at: file) }
    let script = try RestScript(file: file)
    defer { script.stop() }
    let (a, b) = (try engine(3), try engine(4))
    let back = RestNotes(url: script.url, transport: Transports.all[0].make())
    let sa = try SyncSession(
      ReplicationLog(a), name: "notes", capabilities: back.peer().capabilities)
    let sb = try SyncSession(
      ReplicationLog(b), name: "notes", capabilities: back.peer().capabilities)
    try put(a, Array("draft".utf8), [1])
    try await settle(sa, back.peer())
    try await settle(sb, back.peer())
    #expect(try value(b, Array("note/1".utf8)) == [1])
    try put(b, Array("note/1".utf8), [2])
    try await settle(sb, back.peer())
    try await settle(sa, back.peer())
    #expect(try value(a, Array("draft".utf8)) == [2] && value(a, Array("note/1".utf8)) == nil)
    var batch = OperationBatch()
    try batch.add(.delete, key: Array("draft".utf8).rawSpan)
    try a.commit(batch)
    try await settle(sa, back.peer())
    try await settle(sb, back.peer())
    #expect(try value(b, Array("note/1".utf8)) == nil)
    // A key that is put again is created anew.
    try put(a, Array("draft".utf8), [3])
    try await settle(sa, back.peer())
    #expect(try sa.knownAliases().alias(ofKey: "draft") == "2")
    #expect(sa.totals.parked == 0 && sb.totals.parked == 0)
  }
}
