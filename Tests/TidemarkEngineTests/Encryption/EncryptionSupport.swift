#if Encryption
  import Testing
  import TidemarkTestKit

  @testable import TidemarkEngine

  /// Keys for tests: nothing but their number tells them apart.
  enum TestKeys {
    static func key(_ number: UInt8) -> [UInt8] {
      (0..<32).map { UInt8(truncatingIfNeeded: Int(number) &* 31 &+ $0 &* 7) }
    }

    static func id(_ number: UInt8) throws -> Encryption.KeyID {
      try #require(Encryption.id(ofKey: key(number)))
    }

    /// Keys of which the first is for writing.
    static func encryption(_ numbers: UInt8...) -> Encryption {
      let keys = numbers.map { key($0) }
      return .key { id in
        guard let id else { return keys.first }
        return keys.first { Encryption.id(ofKey: $0) == id }
      }
    }
  }

  extension TestStore {
    /// A store that is encrypted with some keys, the first of them for writing.
    static func encrypted(_ encryption: Encryption? = TestKeys.encryption(1)) -> TestStore {
      var store = TestStore()
      store.configuration.encryption = encryption
      return store
    }

    /// The same disk, opened with other keys.
    func with(_ encryption: Encryption?) -> TestStore {
      var store = self
      store.configuration.encryption = encryption
      return store
    }

    /// The code of the error that an opening ends with; nil when it succeeds.
    func refusal(_ access: EngineConfiguration.Access = .write) throws -> TidemarkError.Code? {
      do {
        try open(access).close()
        return nil
      } catch let error as TidemarkError {
        return error.code
      }
    }

    /// Every file of the store with its bytes, but LOCK.
    func files() throws -> [String: [UInt8]] {
      var files: [String: [UInt8]] = [:]
      for path in disk.files() where !path.hasSuffix("/LOCK") {
        let file = try disk.open(path, .read)
        files[path] = try file.read(try file.length(), at: 0)
        file.close()
      }
      return files
    }

    func verify(_ encryption: Encryption? = nil) throws -> VerifyReport {
      try StoreVerifier.verify(
        path, environment: environment(), recordsDamage: false, encryption: encryption)
    }
  }

  /// Fills a store with everything that has a form of its own on the disk: raw and compressed
  /// frames, large values, deletes, touches, a compacted segment with a dictionary, a sorted run
  /// and a torn tail in quarantine.
  func fill(_ store: TestStore) throws {
    let engine = try store.open()
    for round in 0..<3 {
      var batch = OperationBatch()
      for i in 0..<4_000 {
        let value = "secret-value number \(i) of round \(round), which a dictionary likes"
        let set = try batch.addLabelSet([bytes("secret-label-\(i % 7)")])
        try batch.add(
          .put, key: bytes("secret-key/\(i)/\(round)").rawSpan,
          value: bytes(value + String(value.reversed()) + value).rawSpan, labelSet: set)
      }
      try engine.commit(batch)
    }
    try engine.compact()
    try engine.put("secret-key/large", String(repeating: "secret-value ", count: 6_000))
    try engine.delete("secret-key/3/1")
    try engine.touch("secret-key/4/1")
    try engine.checkpointer.writeRun()
    try engine.close()
    try tear(store)
  }

  /// Leaves a torn tail behind, which the next opening puts into quarantine.
  func tear(_ store: TestStore) throws {
    let engine = try store.open()
    try engine.put("secret-key/torn", "secret-value before", durability: .durable)
    let name = try #require(store.disk.files().filter { $0.hasSuffix(".seg") }.max())
    try engine.put("secret-key/torn", "secret-value that is torn", labels: ["secret-label"])
    store.disk.kill()
    store.disk.restart()
    let file = try store.disk.open(name, .readWrite)
    // The last byte of the last frame that is not padding.
    let all = try file.read(try file.length(), at: 0)
    let last = try #require(all.lastIndex { $0 != 0 })
    try file.writeFully([all[last] ^ 0x55].rawSpan, at: last)
    file.close()
    try store.open().close()
  }

  extension [UInt8] {
    /// Whether other bytes stand in these.
    func contains(_ other: [UInt8]) -> Bool {
      guard let first = other.first else { return true }
      var start = startIndex
      while let found = self[start...].firstIndex(of: first), found + other.count <= count {
        if self[found..<(found + other.count)].elementsEqual(other) { return true }
        start = found + 1
      }
      return false
    }
  }
#endif
