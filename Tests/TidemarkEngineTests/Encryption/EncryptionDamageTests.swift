#if Encryption
  import Testing
  import TidemarkTestKit

  @testable import TidemarkEngine

  @Suite("Encryption: damage and forgery")
  struct EncryptionDamageTests {
    /// A store with an appended and a compacted segment and a sorted run, closed.
    private func small() throws -> TestStore {
      let store = TestStore.encrypted()
      let engine = try store.open()
      for i in 0..<20 { try engine.put("key \(i)", "value \(i)", labels: ["label"]) }
      try engine.compact()
      for i in 10..<20 { try engine.put("key \(i)", "newer value \(i)") }
      try engine.checkpointer.writeRun()
      try engine.close()
      return store
    }

    private func disk(_ files: [String: [UInt8]]) throws -> TestStore {
      let store = TestStore.encrypted()
      for path in ["/store", "/store/log", "/store/index", "/store/quarantine"] {
        try store.disk.createDirectory(path)
      }
      for (path, content) in files {
        let file = try store.disk.open(path, .create)
        try file.writeFully(content.rawSpan, at: 0)
        file.close()
      }
      return store
    }

    @Test("a flipped bit is found with the key and without, and no read is wrong")
    func bitFlips() throws {
      let files = try small().files()
      for (path, content) in files.sorted(by: { $0.key < $1.key })
      where path.hasSuffix(".seg") || path.hasSuffix(".idx") {
        let pages = path.hasSuffix(".seg") ? 8192 : 4096
        for offset in content.indices {
          // Most of a header is zeros, and a sorted run is long.
          if offset < pages, offset % 4096 > 580, offset % 101 != 5 { continue }
          if offset >= pages, offset % (path.hasSuffix(".idx") ? 97 : 3) != 0 { continue }
          var damaged = files
          damaged[path]?[offset] ^= 1 << (offset % 8)
          let store = try disk(damaged)
          let lock = try store.disk.lock("/store/LOCK", owner: bytes("test"))
          for encryption in [nil, TestKeys.encryption(1)] {
            let report = try store.verify(encryption)
            #expect(report.isOpaque == (encryption == nil))
            #expect(!report.isHealthy, "\(path), \(offset), key: \(encryption != nil)")
            #expect(report.findings.allSatisfy { path.hasSuffix($0.file) }, "\(path), \(offset)")
          }
          withExtendedLifetime(lock) {}
          if offset % 7 == 0 { try expectRightOrFailing(store, "\(path), \(offset)") }
        }
      }
    }

    private func expectRightOrFailing(_ store: TestStore, _ comment: Comment) throws {
      let engine: Engine
      do { engine = try store.open(.readOnly) } catch let error as TidemarkError {
        #expect([.damaged, .wrongKey].contains(error.code), comment)
        return
      }
      for i in 0..<20 {
        do {
          #expect(
            try engine.get("key \(i)") == (i < 10 ? "value \(i)" : "newer value \(i)"), comment)
        } catch let error as TidemarkError { #expect(error.code == .damaged, comment) }
      }
      try engine.close()
    }

    @Test("a healthy store passes without the key, and its open tail, too")
    func withoutKey() throws {
      let store = try small()
      let report = try store.verify()
      #expect(report.isHealthy && report.isOpaque)
      #expect(report.entries == 30)
      let engine = try store.open()
      try engine.put("open", "tail", durability: .durable)
      store.disk.kill()
      store.disk.restart()
      let open = try store.verify()
      #expect(open.isHealthy)
      #expect(open.entries == 31)
      #expect(throws: TidemarkError.self) { try store.verify(TestKeys.encryption(2)) }
    }

    @Test("with both header pages gone an encrypted segment is lost, and repair says which entries")
    func lostHeader() throws {
      let store = try small()
      let names = store.disk.files().filter { $0.hasSuffix(".seg") }.sorted()
      let file = try store.disk.open(try #require(names.last), .readWrite)
      try file.writeFully([UInt8](repeating: 0, count: 8192).rawSpan, at: 0)
      file.close()
      #expect(try !store.verify(TestKeys.encryption(1)).isHealthy)
      let report = try StoreRepair.repair(
        from: "/store", into: "/new", environment: store.environment(),
        encryption: TestKeys.encryption(1))
      #expect(report.entries == 20)
      #expect(report.lost.ranges == [21...30])
    }

    @Test("a frame that was changed together with its checksums is not authentic")
    func forgery() throws {
      let sealer = BlockSealer(key: TestKeys.key(1), fileID: 3)
      let codecs = FrameCodecs(contexts: ZstdContexts(), sealer: sealer)
      var builder = FrameBuilder()
      let none: [UInt8] = []
      for i in 0..<3 {
        let entry = FrameBuilder.Entry(
          kind: .put, endsBatch: true, sequence: UInt64(5 + i), commitTime: 9)
        builder.add(
          entry, key: bytes("key \(i)").rawSpan, value: bytes("value \(i)").rawSpan,
          attributes: none.rawSpan
        ) { _ in [] }
      }
      var output: [UInt8] = []
      let frame = try builder.finish(
        appendingTo: &output, offset: 8192, salt: 1, durableThrough: 4, level: nil,
        codecs: codecs)
      let header = frame.header
      func front(
        _ header: FrameHeader, at offset: Int = 8192, _ change: (inout [UInt8]) -> Void = { _ in }
      ) throws -> DecodedFront {
        var bytes = Array(output[64..<(64 + header.frontLength)])
        change(&bytes)
        var header = header
        header.headsChecksum = XXH64.hash(bytes.rawSpan)
        return try DecodedFront(bytes.rawSpan, header: header, offset: offset, codecs: codecs)
      }
      let whole = try front(header)
      #expect(whole.entries.map(\.sequence) == [5, 6, 7])
      var forged: [FrameHeader] = Array(repeating: header, count: 4)
      forged[0].durableThrough = 7
      forged[1].firstSequence = 6
      forged[2].entryCount = 2
      forged[3].hasExplicitSequences = true
      for header in forged { #expect(throws: FormatError.self) { try front(header) } }
      #expect(throws: FormatError.self) { try front(header, at: 8200) }
      // A byte of the block table, and one of the heads.
      #expect(throws: FormatError.self) { try front(header) { $0[2] ^= 1 } }
      #expect(throws: FormatError.self) { try front(header) { $0[20] ^= 1 } }
      let start = 64 + header.frontLength
      let block = whole.blocks[0]
      let stored = Array(output[start..<(start + block.storedLength - 4)])
      #expect(
        try codecs.decode(stored.rawSpan, block: block, at: 8192 + start).count == 21)
      #expect(throws: FormatError.self) {
        try codecs.decode(stored.rawSpan, block: block, at: 8200 + start)
      }
      var other = stored
      other[0] ^= 1
      let changed = other
      #expect(throws: FormatError.self) {
        try codecs.decode(changed.rawSpan, block: block, at: 8192 + start)
      }
    }
  }
#endif
