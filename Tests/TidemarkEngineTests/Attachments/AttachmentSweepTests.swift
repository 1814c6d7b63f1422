import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Attachments and the entries that name them")
struct AttachmentSweepTests {
  let store = TestStore()

  private func write(_ text: String, to engine: Engine) throws -> AttachmentHold {
    let writer = try engine.newAttachment()
    try writer.write(bytes(text).rawSpan)
    return try writer.finish()
  }

  /// The hashes that entries name, found without the sweep's notes: all of owned entries, of cached
  /// ones those that are a key's newest.
  private func inUse(_ engine: Engine) throws -> Set<[UInt8]> {
    var hashes: Set<[UInt8]> = []
    var cursor = LogCursor(engine.reader, from: 1, through: .max)
    while let entry = try cursor.next() {
      let attributes = try entry.attributes()
      guard entry.head.kind == .put, let id = attributes.attachment else { continue }
      let slot = try engine.reader.slot(ofKey: entry.key.rawSpan)
      if attributes.entryClass == .cache, slot?.sequence != entry.sequence { continue }
      hashes.insert(id.hash)
    }
    return hashes
  }

  private func files(_ engine: Engine) throws -> Int { try engine.attachments.hashes().count }

  @Test("content that no entry names goes at a sweep, and content that is being committed stays")
  func orphans() throws {
    let engine = try store.open()
    let kept = try write("kept", to: engine)
    try engine.attach(kept.id, to: "k")
    var loose: AttachmentHold? = try write("loose", to: engine)
    #expect(try engine.sweepAttachments().removed == 0)
    #expect(loose != nil)
    loose = nil
    #expect(try engine.sweepAttachments().removed == 1)
    #expect(try engine.openAttachment(kept.id) != nil)
    try engine.close()
  }

  @Test("an entry cannot name an attachment that is not there")
  func absent() throws {
    let engine = try store.open()
    let id = AttachmentID(hash: [UInt8](repeating: 7, count: 32), length: 9)
    let error = #expect(throws: TidemarkError.self) { try engine.attach(id, to: "k") }
    #expect(error?.code == .invalidArgument)
    #expect(engine.reader.liveKeys == 0)
    try engine.close()
  }

  @Test("the history of a key keeps its attachments until it is dropped")
  func history() throws {
    let engine = try store.open()
    for text in ["1", "2", "3"] { try engine.attach(write(text, to: engine).id, to: "k") }
    try engine.compact()
    #expect(try files(engine) == 3)
    let report = try engine.compact(CompactionOptions(dropHistory: true))
    #expect(report.attachmentsRemoved == 2)
    #expect(try files(engine) == 1)
    #expect(try engine.delete("k"))
    try engine.compact(CompactionOptions(dropHistory: true))
    #expect(try files(engine) == 0)
    try engine.close()
  }

  @Test("content that two keys share stays as long as one of them names it")
  func shared() throws {
    let engine = try store.open()
    for key in ["a", "b"] { try engine.attach(write("same", to: engine).id, to: key) }
    #expect(try files(engine) == 1)
    #expect(try engine.delete("a"))
    try engine.compact(CompactionOptions(dropHistory: true))
    #expect(try files(engine) == 1)
    #expect(try engine.delete("b"))
    try engine.compact(CompactionOptions(dropHistory: true))
    #expect(try files(engine) == 0)
    try engine.close()
  }

  @Test("cached content goes once its entry was replaced or evicted, without a compaction")
  func cached() throws {
    let engine = try store.open()
    for text in ["1", "2"] {
      try engine.attach(write(text, to: engine).id, to: "k", cached: true)
    }
    #expect(try engine.touch("k"))
    #expect(try engine.sweepAttachments().removed == 1)
    #expect(try engine.openAttachment(write("2", to: engine).id) != nil)
    do {
      let view = try engine.reader.view()
      #expect(try engine.evict("k"))
      // A view shows it still.
      #expect(try engine.sweepAttachments().removed == 0)
      withExtendedLifetime(view) {}
    }
    #expect(try engine.sweepAttachments().removed == 1)
    try engine.close()
  }

  @Test("a store whose attachments come and go sweeps by itself, so its disk stays bounded")
  func churn() throws {
    let engine = try store.open()
    let chunk = [UInt8](repeating: 1, count: 1 << 20)
    var most = 0
    for round in 0..<200 {
      let writer = try engine.newAttachment()
      try writer.write(chunk.rawSpan)
      try writer.write(bytes("\(round)").rawSpan)
      try engine.attach(writer.finish().id, to: "\(round % 8)", cached: true)
      try engine.writer.flush()
      most = max(most, try files(engine))
    }
    // Eight are live; 64 MiB more may come between two sweeps.
    #expect(most <= 8 + 64 + 2)
    try engine.close()
  }

  @Test("verify names damaged and missing content, a copy and a repair have all of it")
  func upkeep() throws {
    var engine = try store.open()
    let holds = try ["1", "2", "3"].map { try write($0, to: engine) }
    for hold in holds { try engine.attach(hold.id, to: "k\(hold.id.fileName)") }
    try engine.releaseAttachment(holds[2].id)
    try engine.backup(to: "/copy")
    try engine.close()
    var report = try StoreVerifier.verify("/store", environment: store.environment())
    #expect(report.isHealthy && report.attachments == 3 && report.attachmentsReleased == 1)
    let paths = holds.map { "/store/attachments/" + $0.id.fileName }
    #expect(store.disk.flipBit(8 * 256, inFile: paths[0]))
    try store.disk.remove(paths[1])
    report = try StoreVerifier.verify("/store", environment: store.environment())
    #expect(
      Set(report.findings.map(\.file))
        == Set(paths[..<2].map { String($0.dropFirst("/store/".count)) }))
    let repaired = try StoreRepair.repair(
      from: "/store", into: "/repaired", environment: store.environment())
    #expect(repaired.losses.count == 1 && !repaired.isComplete)
    report = try StoreVerifier.verify("/copy", environment: store.environment())
    #expect(report.isHealthy && report.attachments == 3)
    engine = try Engine.open(
      "/copy", configuration: EngineConfiguration(), environment: store.environment())
    #expect(try engine.openAttachment(holds[0].id) != nil)
    try engine.close()
  }

  @Test(
    "power cuts and kills at any call leave what was acknowledged with its content",
    arguments: 1...60)
  func crashes(seed: UInt64) throws {
    var chance = SeededGenerator(seed: seed)
    let store = TestStore(seed: seed)
    var named: [String: String] = [:]
    var pending: (key: String, text: String)?
    for round in 0..<6 {
      let isKill = chance.int(below: 2) == 0
      let call = 1 + chance.int(below: 90)
      store.disk.plan = isKill ? .processKill(atCall: call) : .powerCut(atCall: call)
      do {
        let engine = try store.open(seed: seed &+ UInt64(round))
        while true {
          let key = "k\(chance.int(below: 4))"
          let text = "\(chance.next())"
          pending = (key, text)
          let hold = try write(text, to: engine)
          try engine.attach(hold.id, to: key, cached: key == "k3")
          try engine.writer.flush()
          named[key] = text
          pending = nil
          if chance.int(below: 3) == 0 { try engine.compact(CompactionOptions(dropHistory: true)) }
          if chance.int(below: 3) == 0 { try engine.sweepAttachments() }
        }
      } catch {}
      if store.disk.isRunning { isKill ? store.disk.kill() : store.disk.powerCut() }
      store.disk.plan = .none
      store.disk.restart()
      let engine = try store.open(seed: seed &+ 100)
      for key in named.keys.sorted() {
        let slot = try #require(try engine.reader.slot(ofKey: bytes(key).rawSpan))
        let entry = try engine.reader.entry(at: slot.sequence)
        let id = try #require(try entry.attributes().attachment)
        let reader = try #require(try engine.openAttachment(id), "seed \(seed), round \(round)")
        let text = String(decoding: try reader.read(at: 0, count: 100), as: UTF8.self)
        let isKnown = text == named[key] || (pending?.key == key && text == pending?.text)
        #expect(isKnown, "seed \(seed), round \(round)")
        named[key] = text
      }
      try engine.sweepAttachments()
      let kept = try engine.attachments.hashes()
      #expect(Set(kept) == (try inUse(engine)), "seed \(seed), round \(round)")
      try engine.close()
      let report = try StoreVerifier.verify("/store", environment: store.environment())
      #expect(report.isHealthy, "seed \(seed), round \(round): \(report.findings)")
    }
  }
}
