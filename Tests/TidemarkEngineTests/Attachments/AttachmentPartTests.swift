#if Encryption
  import Testing
  import TidemarkTestKit

  @testable import TidemarkEngine

  @Suite("Content that comes in parts, encrypted")
  struct AttachmentPartTests {
    private let piece = AttachmentHeader.pieceBytes
    private let owner = [UInt8](repeating: 9, count: 16)
    private let whole: [UInt8]
    private let id: AttachmentID

    private var path: String {
      "/store/attachments/part-\(id.fileName)-\(id.length)-\(AttachmentID.text(owner))"
    }

    init() {
      var chance = SeededGenerator(seed: 4)
      let whole = chance.bytes(3 * AttachmentHeader.pieceBytes + 5)
      self.whole = whole
      id = AttachmentID(hash: SHA256.hash(whole.rawSpan), length: UInt64(whole.count))
    }

    /// The stored form of what a part says its piece is.
    private func stored(_ bytes: [UInt8], as number: Int, _ store: TestStore) throws -> [UInt8] {
      let engine = try store.open(.write, seed: 30 + UInt64(bytes[0]))
      let part = try #require(try engine.attachmentPart(of: id, for: owner, begins: true))
      while try !part.verifyStored(most: 1 << 20) {}
      _ = try part.append(bytes, at: number * piece, now: 2)
      try engine.close()
      let file = try #require(store.disk.contents(of: path))
      let header = try AttachmentHeader(decoding: file)
      let start = AttachmentHeader.byteCount + number * (piece + header.pieceOverhead)
      return Array(file[start..<(start + piece)])
    }

    @Test(
      "no two contents of a piece share a nonce, in copies of a store or in one", arguments: 0...2)
    func nonces(number: Int) throws {
      let store = TestStore.encrypted()
      let engine = try store.open()
      let part = try #require(try engine.attachmentPart(of: id, for: owner, begins: true))
      if number > 0 { _ = try part.append(Array(whole.prefix(number * piece)), at: 0, now: 1) }
      try engine.close()
      let snapshot = store.disk.snapshot()
      let contents: [[UInt8]] = (1...3).map { [UInt8](repeating: $0, count: piece) }
      var streams: Set<[UInt8]> = []
      for content in contents {
        store.disk.restore(snapshot)
        let sealed = try stored(content, as: number, store)
        streams.insert(zip(sealed, content).map { $0 ^ $1 })
      }
      // A stream that two have in common tells both contents' difference.
      #expect(streams.count == contents.count)
    }

    @Test("a download under way begins anew after a change of keys, and ends under the new key")
    func rekey() throws {
      for isOpen in [true, false] {
        let store = TestStore.encrypted()
        var engine = try store.open()
        let part = try #require(try engine.attachmentPart(of: id, for: owner, begins: true))
        _ = try part.append(Array(whole.prefix(2 * piece)), at: 0, now: 1)
        if !isOpen {
          try engine.close()
          engine = try store.open(.write, seed: 8)
        }
        try engine.compact(CompactionOptions(newKey: TestKeys.encryption(2)))
        #expect(try store.disk.list("/store/attachments") == [])
        #expect(throws: TidemarkError.self) {
          try part.append(Array(whole.dropFirst(2 * piece)), at: 2 * piece, now: 1)
        }
        let anew = try #require(try engine.attachmentPart(of: id, for: owner, begins: true))
        #expect(anew.received == 0)
        #expect(try anew.append(whole, at: 0, now: 3) == whole.count)
        try engine.attach(anew.finish().id, to: "k")
        #expect(try engine.status().filesToRewrite == 0)
        try engine.close()
        let later = try store.with(TestKeys.encryption(2)).open(.write)
        #expect(try later.openAttachment(id)?.content() == whole)
        try later.close()
      }
    }
  }
#endif
