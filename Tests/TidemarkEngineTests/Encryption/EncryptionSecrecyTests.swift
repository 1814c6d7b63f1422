#if Encryption
  import Testing
  import TidemarkTestKit

  @testable import TidemarkEngine

  @Suite("Encryption: what can be read without the key")
  struct EncryptionSecrecyTests {
    @Test("no file of an encrypted store holds a key, a value or a label; those of others do")
    func secrecy() throws {
      func leaks(_ store: TestStore) throws -> (found: Set<String>, all: Set<String>) {
        try fill(store)
        let files = try store.files()
        let words = ["secret-", "value number", "dictionary likes"].map { bytes($0) }
        let found = files.filter { file in words.contains { file.value.contains($0) } }
        func kinds(_ paths: some Sequence<String>) -> Set<String> {
          Set(paths.map { String($0.split(separator: ".").last ?? "") })
        }
        #expect(files.keys.contains { $0.contains("/quarantine/") })
        return (kinds(found.keys), kinds(files.keys))
      }
      let plain = try leaks(TestStore())
      #expect(plain.found == ["seg", "idx", "bin"])
      let encrypted = try leaks(.encrypted())
      #expect(encrypted.found == [])
      #expect(encrypted.all == plain.all)
    }

    @Test("neither the user's key nor a file's stands in any file")
    func keys() throws {
      let store = TestStore.encrypted()
      try fill(store)
      for (path, content) in try store.files() {
        #expect(!content.contains(Array(TestKeys.key(1).prefix(8))), "\(path)")
      }
    }

    @Test("every opening that writes, every compaction and every sorted run has a key of its own")
    func freshKeys() throws {
      let store = TestStore.encrypted()
      var seals: [FileSeal] = []
      var seen: Set<String> = []
      func collect() throws {
        for (path, content) in try store.files() where !seen.contains(path) {
          if path.hasSuffix(".seg") {
            seen.insert(path)
            seals.append(try #require(try SegmentHeader(decodingPage: content.rawSpan).seal))
          } else if path.hasSuffix(".idx") {
            seen.insert(path)
            let page = try content.rawSpan.slice(0, RunLayout.headerBytes)
            seals.append(try #require(try RunHeader(page).seal))
          }
        }
      }
      for round in 0..<4 {
        let engine = try store.open(seed: UInt64(round))
        try engine.put("k", "round \(round)")
        try collect()
        if round == 2 { try engine.compact() }
        try collect()
        try engine.checkpointer.writeRun()
        try collect()
        if round == 1 {
          store.disk.kill()
          store.disk.restart()
        } else {
          try engine.close()
        }
        try collect()
      }
      #expect(seals.count >= 9)
      #expect(Set(seals.map(\.nonce)).count == seals.count)
      #expect(Set(seals.map(\.wrapped)).count == seals.count)
      let keys = try seals.map { seal in
        let wrapper = BlockSealer(key: TestKeys.key(1), fileID: 0)
        return try wrapper.opened(
          seal.wrapped.rawSpan, seal.nonce, authenticating: seal.header)
      }
      #expect(Set(keys).count == keys.count)
    }

    @Test("recovery does not write a place of an encrypted segment twice with different bytes")
    func recoveryRewritesTheSame() throws {
      let store = TestStore.encrypted()
      let engine = try store.open()
      for i in 0..<50 { try engine.put("k\(i)", "value \(i)", durability: .buffered) }
      let name = try #require(store.disk.files().first { $0.hasSuffix(".seg") })
      store.disk.kill()
      store.disk.restart()
      let before = try #require(try store.files()[name])
      try store.open().close()
      let after = try #require(try store.files()[name])
      let footer = try SegmentFooter(
        decoding: try after.rawSpan.slice(
          after.count - FormatConstants.segmentFooterBytes, FormatConstants.segmentFooterBytes),
        salt: try SegmentHeader(decodingPage: after.rawSpan).salt)
      #expect(footer.locatorOffset > FormatConstants.segmentHeaderBytes)
      #expect(before[..<footer.locatorOffset] == after[..<footer.locatorOffset])
    }
  }
#endif
