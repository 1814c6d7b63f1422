#if Encryption
  import Testing
  import TidemarkTestKit

  @testable import TidemarkEngine

  /// A change of keys is cut off at any call and finished by another compaction: after that no file
  /// holds anything under another key, and until then the status says that something does.
  @Suite("Encryption: interrupted changes of keys")
  struct InterruptedKeyChangeTests {
    /// How a change of keys that was cut off goes on.
    enum Finish: CaseIterable {
      case again, plain, withoutHistory, dense
      /// These need not rewrite everything.
      case automatic, closing
    }

    enum Cut: CaseIterable {
      case kill, power, error
    }

    private let secret = bytes("SECRET")

    /// A store with a file of every kind, of which each holds `SECRET` or is encrypted with key 1.
    private func filled(_ key: Encryption?, seed: UInt64) throws -> TestStore {
      var store = TestStore(seed: seed)
      store.configuration = .campaign
      store.configuration.encryption = key
      var engine = try store.open(seed: seed)
      var number = 0
      func attach(_ length: Int) throws {
        let writer = try engine.newAttachment()
        let text = "SECRET \(number) "
        try writer.write(bytes(String(repeating: text, count: length / text.utf8.count)).rawSpan)
        try engine.attach(writer.finish().id, to: "SECRET/attached/\(number)", cached: number == 1)
        number += 1
      }
      for length in [70_000, 1_000, 2_000] { try attach(length) }
      for i in 0..<200 { try engine.put("SECRET/\(i % 150)", "SECRET value \(i)", labels: ["x"]) }
      try engine.checkpointer.writeRun()
      try engine.compact()
      for i in 0..<40 { try engine.put("SECRET/\(i)", "SECRET newer \(i)", labels: ["SECRET"]) }
      for _ in 0..<2 { try HintFile(engine.writer, name: "hint").write(secret) }
      try engine.close()
      engine = try store.open(seed: seed + 1)
      try attach(3_000)
      // A download that waits for its second piece, and content that a kill cuts off.
      let whole = bytes(String(repeating: "SECRET", count: 20_000))
      let id = AttachmentID(hash: SHA256.hash(whole.rawSpan), length: UInt64(whole.count))
      let part = try #require(
        try engine.attachmentPart(of: id, for: [UInt8](repeating: 9, count: 16), begins: true))
      _ = try part.append(Array(whole.prefix(70_000)), at: 0, now: 1)
      let unfinished = try engine.newAttachment()
      try unfinished.write(whole.rawSpan)
      for i in 0..<20 { try engine.put("SECRET/\(i)", "SECRET last \(i)", durability: .durable) }
      try engine.put("SECRET/torn", "SECRET, which is torn")
      store.disk.kill()
      store.disk.restart()
      let last = try #require(store.disk.files().filter { $0.hasSuffix(".seg") }.max())
      let content = try #require(store.disk.contents(of: last))
      let end = try #require(content.lastIndex { $0 != 0 })
      #expect(store.disk.flipBit(8 * end, inFile: last))
      return store
    }

    /// The files that hold what key 2 does not encrypt.
    private func leftovers(_ store: TestStore) throws -> [String] {
      let former = try TestKeys.id(1).bytes
      return store.disk.files().filter { path in
        guard "/\(path)".hasPrefix(store.path + "/"), !path.contains("/MANIFEST"),
          let content = store.disk.contents(of: path)
        else { return false }
        return path.contains("/new-") || path.hasSuffix(".run") || content.contains(former)
          || content.contains(secret)
      }
    }

    private func finish(_ engine: Engine, _ finish: Finish) throws {
      switch finish {
      case .again: try engine.compact(CompactionOptions(newKey: TestKeys.encryption(2)))
      case .plain: try engine.compact()
      case .withoutHistory: try engine.compact(CompactionOptions(dropHistory: true))
      case .dense: try engine.compact(CompactionOptions(dense: true))
      case .automatic:
        try engine.writer.sealSegments()
        let first = engine.reader.reading.withLock { $0.segments.first?.id ?? 0 }
        try engine.compact(engine.autoCompactor.automaticOptions(from: first))
      case .closing: try engine.compactor.mergeSmallSegments()
      }
    }

    private func run(
      _ key: Encryption?, _ cut: Cut, atCall call: Int, _ end: Finish
    ) throws -> (isOver: Bool, comment: Comment) {
      let comment: Comment = "\(cut) at call \(call), then \(end), encrypted: \(key != nil)"
      var store = try filled(key, seed: 5)
      var engine = try store.open(.write)
      let before = store.disk.injected.total
      switch cut {
      case .kill: store.disk.plan = .processKill(atCall: call)
      case .power: store.disk.plan = .powerCut(atCall: call)
      case .error:
        store.disk.plan = [FaultRule(.error(.EIO), .call(call), calls: .mutating)]
      }
      var isOver = false
      do {
        try engine.compact(CompactionOptions(newKey: TestKeys.encryption(2)))
        isOver = store.disk.injected.total == before
        if isOver || cut == .error { try engine.close() }
      } catch { try? engine.close() }
      if cut == .power, store.disk.isRunning { store.disk.powerCut() }
      if cut == .kill, store.disk.isRunning { store.disk.kill() }
      store.disk.plan = .none
      if !store.disk.isRunning { store.disk.restart() }
      // A store that knows nothing of the change yet refuses a new key in the place of its own.
      if key != nil {
        store.configuration.encryption = TestKeys.encryption(2, 1)
      } else {
        store.configuration.newKey = TestKeys.encryption(2)
        store.configuration.encryption = nil
        let manifest = try ManifestStore(store.disk, storePath: store.path).load()?.manifest
        if manifest?.isEncrypted == true { store.configuration.encryption = TestKeys.encryption(2) }
      }
      engine = try store.open(.write)
      let wasBegun = try engine.status().keyIDs.first == TestKeys.id(2) || key != nil
      try finish(engine, wasBegun ? end : .again)
      let status = try engine.status()
      let left = try leftovers(store)
      let saysAll = try status.filesToRewrite == 0 && status.keyIDs == [TestKeys.id(2)]
      if saysAll || end != .automatic && end != .closing {
        #expect(saysAll && left.isEmpty, "\(comment): \(left)")
      } else if !left.isEmpty {
        #expect(status.filesToRewrite > 0 && status.keyIDs.count > 1 || key == nil, comment)
      }
      try engine.compact()
      try engine.close()
      #expect(try leftovers(store) == [], comment)
      store.configuration.newKey = nil
      store.configuration.encryption = TestKeys.encryption(2)
      engine = try store.open(.write)
      for name in 0..<4 {
        let key = bytes("SECRET/attached/\(name)")
        let slot = try #require(try engine.reader.slot(ofKey: key.rawSpan))
        let id = try #require(try engine.reader.entry(at: slot.sequence).attributes().attachment)
        try #require(try engine.openAttachment(id)).verify()
      }
      try engine.close()
      #expect(try store.verify(TestKeys.encryption(2)).isHealthy, comment)
      return (isOver, comment)
    }

    @Test(
      "an interrupted change of keys leaves nothing under another key, however it is finished",
      arguments: [true, false], Cut.allCases)
    func interrupted(wasEncrypted: Bool, cut: Cut) throws {
      let key = wasEncrypted ? TestKeys.encryption(1) : nil
      var call = 1
      var round = 0
      while call < 2_000 {
        let end = Finish.allCases[round % Finish.allCases.count]
        round += 1
        if try run(key, cut, atCall: call, end).isOver { break }
        call += 7 + round % 5
      }
      #expect(call > 60 && call < 2_000, "\(call) calls")
    }

    @Test(
      "a store that is repaired within a change of keys has all of it under the new key",
      arguments: [true, false], [Cut.kill, .power])
    func repaired(wasEncrypted: Bool, cut: Cut) throws {
      let key = wasEncrypted ? TestKeys.encryption(1) : nil
      var counts = (mixed: 0, all: 0)
      for call in stride(from: 3, to: 400, by: 6) {
        let comment: Comment = "\(cut) at call \(call), encrypted: \(wasEncrypted)"
        let store = try filled(key, seed: 5)
        let engine = try store.open(.write)
        store.disk.plan = cut == .kill ? .processKill(atCall: call) : .powerCut(atCall: call)
        do {
          try engine.compact(CompactionOptions(newKey: TestKeys.encryption(2)))
          break
        } catch { try? engine.close() }
        store.disk.plan = .none
        if !store.disk.isRunning { store.disk.restart() }
        let manifest = try ManifestStore(store.disk, storePath: store.path).load()?.manifest
        guard manifest?.keyID == (try TestKeys.id(2)) else { continue }
        counts.all += 1
        if try !leftovers(store).filter({ $0.contains("/attachments/") }).isEmpty {
          counts.mixed += 1
        }
        let keys = key == nil ? TestKeys.encryption(2) : TestKeys.encryption(2, 1)
        let report = try StoreRepair.repair(
          from: store.path, into: "/fixed", environment: store.environment(), encryption: keys)
        #expect(report.losses.isEmpty, comment)
        var fixed = store
        fixed.path = "/fixed"
        #expect(try leftovers(fixed) == [], comment)
        fixed.configuration.encryption = TestKeys.encryption(2)
        #expect(try fixed.verify(TestKeys.encryption(2)).isHealthy, comment)
        let repaired = try fixed.open(.write)
        #expect(try repaired.status().filesToRewrite == 0, comment)
        for name in 0..<4 {
          let slot = try #require(
            try repaired.reader.slot(ofKey: bytes("SECRET/attached/\(name)").rawSpan))
          let id = try #require(
            try repaired.reader.entry(at: slot.sequence).attributes().attachment)
          try #require(try repaired.openAttachment(id)).verify()
        }
        try repaired.close()
      }
      #expect(counts.mixed > 3, "\(counts)")
    }
  }
#endif
