#if Encryption
  import Testing

  @testable import TidemarkEngine

  @Suite("Encryption: the cipher and its vectors")
  struct EncryptionVectorTests {
    private func hex(_ text: String) -> [UInt8] {
      let digits = text.compactMap { $0.hexDigitValue.map { UInt8($0) } }
      return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }

    @Test("AES-256-GCM gives what its authors' test case 16 says")
    func cipher() throws {
      let half = "feffe9928665731c6d6a8f9467308308"
      let sealer = BlockSealer(key: hex(half + half), fileID: 0)
      let nonce = hex("cafebabefacedbaddecaf888")
      let associated = hex("feedfacedeadbeeffeedfacedeadbeefabaddad2")
      let plain = hex(
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
          + "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39")
      let sealed = hex(
        "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
          + "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
          + "76fc6ece0f4e1768cddf8853bb2d551b")
      #expect(
        try sealer.sealed(plain.rawSpan, nonce, authenticating: associated) == sealed)
      #expect(
        try sealer.opened(sealed.rawSpan, nonce, authenticating: associated) == plain)
    }

    /// Worked out by another implementation of AES and SHA-256, from the file format's text.
    @Test("key id, wrapped key, nonces and associated data are those of the file format")
    func format() throws {
      let user = (0..<32).map { UInt8($0) }
      let id = try #require(Encryption.id(ofKey: user))
      #expect(id.description == "d3e23addb153dc148f2d4147149ba146")
      let key = NewFileKey(
        keyID: id, userKey: user, random: (0..<NewFileKey.randomBytes).map { UInt8(100 + $0) })
      let seal = try key.seal(fileID: 7, prefix: Array(repeating: 9, count: 88))
      #expect(
        seal.wrapped
          == hex(
            "386aac150d9c20e9461b2593a6181482c24384890fe975f52f5826c3772e2bc7"
              + "b6d5dce662046868b43a09660931f486"
          ))
      let sealer = try seal.sealer(key: user, fileID: 7)
      let block = BlockEntry(storedLength: 25, rawLength: 5, codec: .raw)
      var stored = bytes("head hello")
      try sealer.seal(
        &stored, from: 5, .block(at: 8264), authenticating: block.associatedData)
      #expect(Array(stored.dropFirst(5)) == hex("ca74603607999b5f7457994d49eed2e3a3b4ac3bf2"))
      var chunk = bytes("locator")
      try sealer.seal(&chunk, from: 0, .locator(at: 70_000, chunk: 3))
      #expect(chunk == hex("f2bce97941907b1db8d1a610b6b60288f83e0f97863baa"))
    }

    @Test("a piece opens with its own nonce, place, file and associated data only")
    func binding() throws {
      let sealer = BlockSealer(key: TestKeys.key(1), fileID: 7)
      var stored = bytes("some words")
      try sealer.seal(&stored, from: 0, .block(at: 64), authenticating: [1])
      let sealed = stored
      #expect(try sealer.open(sealed.rawSpan, .block(at: 64), authenticating: [1]).count == 10)
      func refuses(
        _ sealer: BlockSealer, _ bytes: [UInt8], _ nonce: BlockSealer.Nonce, _ more: [UInt8]
      ) -> Bool {
        (try? sealer.open(bytes.rawSpan, nonce, authenticating: more)) == nil
      }
      #expect(refuses(sealer, sealed, .block(at: 72), [1]))
      #expect(refuses(sealer, sealed, .heads(at: 64), [1]))
      #expect(refuses(sealer, sealed, .block(at: 64), [2]))
      #expect(refuses(sealer, sealed, .block(at: 64), []))
      #expect(refuses(BlockSealer(key: TestKeys.key(1), fileID: 8), sealed, .block(at: 64), [1]))
      #expect(refuses(BlockSealer(key: TestKeys.key(2), fileID: 7), sealed, .block(at: 64), [1]))
      #expect(refuses(sealer, Array(sealed.dropLast()), .block(at: 64), [1]))
      #expect(refuses(sealer, [], .block(at: 64), [1]))
      for i in sealed.indices {
        var flipped = sealed
        flipped[i] ^= 1 << (i % 8)
        #expect(refuses(sealer, flipped, .block(at: 64), [1]))
      }
    }

    @Test("no two pieces of a file have the same nonce")
    func nonces() {
      var nonces: [BlockSealer.Nonce] = [.dictionary]
      for place in [0, 1, 8192, 8256, 70_000] {
        nonces += [.block(at: place), .heads(at: place), .run(chunk: place)]
        for chunk in [0, 1, 262_143] { nonces.append(.locator(at: place, chunk: chunk)) }
      }
      #expect(Set(nonces).count == nonces.count)
    }
  }
#endif
