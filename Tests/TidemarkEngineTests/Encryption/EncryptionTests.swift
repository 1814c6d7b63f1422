#if Encryption
  import Testing
  import TidemarkTestKit

  @testable import TidemarkEngine

  @Suite("Encryption: keys and stores")
  struct EncryptionTests {
    @Test("an encrypted store gives back what was put, after every kind of reopening")
    func roundTrip() throws {
      let store = TestStore.encrypted()
      try fill(store)
      for access in [EngineConfiguration.Access.write, .readOnly] {
        let engine = try store.open(access)
        #expect(try engine.get("secret-key/17/2")?.hasPrefix("secret-value number 17") == true)
        #expect(try engine.get("secret-key/large")?.count == 78_000)
        #expect(try engine.get("secret-key/3/1") == nil)
        #expect(try engine.get("secret-key/torn") == "secret-value before")
        #expect(engine.reader.liveKeys == 12_001)
        let counts = try engine.reader.labelCounts()
        #expect(counts.count == 7)
        try engine.close()
      }
      #expect(try store.verify(TestKeys.encryption(1)).isHealthy)
      // Without sorted runs everything comes from the log.
      for file in store.disk.files() where file.hasSuffix(".idx") { try store.disk.remove(file) }
      let engine = try store.open()
      #expect(engine.reader.liveKeys == 12_001)
      try engine.close()
    }

    @Test("a wrong key, and no key, are refused in so many words and nothing is touched")
    func refusals() throws {
      let store = TestStore.encrypted()
      try fill(store)
      try store.open().put("a", "left open")
      store.disk.kill()
      store.disk.restart()
      let before = try store.files()
      for access in [EngineConfiguration.Access.create, .write, .readOnly] {
        #expect(try store.with(TestKeys.encryption(2)).refusal(access) == .wrongKey)
        #expect(try store.with(nil).refusal(access) == .keyMissing)
      }
      let short = Encryption.key { _ in [1, 2, 3] }
      #expect(try store.with(short).refusal() == .wrongKey)
      #expect(try store.with(short).refusal(.create) == .invalidArgument)
      struct Refused: Error {}
      #expect(try store.with(.key { _ in throw Refused() }).refusal() == .keyMissing)
      #expect(try store.with(.key { _ in nil }).refusal() == .wrongKey)
      #expect(try store.files() == before)
      #expect(try store.refusal() == nil)
    }

    @Test("a key for a store that is not encrypted is refused")
    func notEncrypted() throws {
      let store = TestStore()
      try store.open().close()
      let before = try store.files()
      #expect(try store.with(TestKeys.encryption(1)).refusal(.create) == .notEncrypted)
      #expect(try store.with(TestKeys.encryption(1)).refusal(.readOnly) == .notEncrypted)
      #expect(try store.files() == before)
    }

    @Test("an empty encrypted store knows its key, too")
    func empty() throws {
      let store = TestStore.encrypted()
      try store.open().close()
      #expect(try store.with(TestKeys.encryption(2)).refusal() == .wrongKey)
      #expect(try store.with(nil).refusal() == .keyMissing)
    }

    @Test("a store opened with a new and an old key writes with the new one")
    func severalKeys() throws {
      let store = TestStore.encrypted()
      let engine = try store.open()
      try engine.put("a", "1")
      try engine.close()
      let both = store.with(TestKeys.encryption(2, 1))
      let second = try both.open()
      try second.put("b", "2")
      #expect(try second.get("a") == "1")
      try second.close()
      #expect(try store.refusal() == .wrongKey)
      let third = try both.open()
      let status = try third.status()
      #expect(status.keyIDs == [try TestKeys.id(2), try TestKeys.id(1)])
      #expect(status.filesToRewrite == 1)
      try third.compact()
      try third.close()
      let last = try store.with(TestKeys.encryption(2)).open()
      #expect(try last.get("a") == "1")
      #expect(try last.get("b") == "2")
      try last.close()
    }

    @Test("a backup of an encrypted store opens with the same key and no other")
    func backup() throws {
      let store = TestStore.encrypted()
      try fill(store)
      let engine = try store.open()
      try engine.put("late", "entry")
      try engine.backup(to: "/copy")
      try engine.close()
      func open(_ encryption: Encryption?) throws -> Engine {
        var configuration = store.configuration
        configuration.encryption = encryption
        configuration.access = .write
        return try Engine.open(
          "/copy", configuration: configuration, environment: store.environment(seed: 9))
      }
      #expect(throws: TidemarkError.self) { try open(TestKeys.encryption(2)) }
      let copy = try open(TestKeys.encryption(1))
      #expect(try copy.get("late") == "entry")
      #expect(copy.reader.liveKeys == 12_002)
      try copy.close()
    }

    @Test("a repaired store is encrypted with the same key", arguments: [true, false])
    func repair(hasManifest: Bool) throws {
      let store = TestStore.encrypted()
      try fill(store)
      if !hasManifest {
        for name in StoreLayout.manifests { try store.disk.remove("/store/" + name) }
      }
      #expect(throws: TidemarkError.self) {
        try StoreRepair.repair(from: "/store", into: "/new", environment: store.environment())
      }
      #expect(try store.disk.kind("/new") == nil)
      let report = try StoreRepair.repair(
        from: "/store", into: "/new", environment: store.environment(),
        encryption: TestKeys.encryption(1))
      #expect(report.isComplete)
      for (path, content) in try store.files() where path.hasPrefix("/new/") {
        #expect(!content.contains(bytes("secret-")), "\(path)")
      }
      var configuration = store.configuration
      configuration.access = .write
      let engine = try Engine.open(
        "/new", configuration: configuration, environment: store.environment(seed: 9))
      #expect(engine.reader.liveKeys == 12_001)
      try engine.close()
    }
  }
#endif
