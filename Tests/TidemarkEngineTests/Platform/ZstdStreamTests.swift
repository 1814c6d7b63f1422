import Testing
import TidemarkEngine

@Suite struct ZstdStreamTests {
  /// Feeds `file` in pieces of `feed` bytes and takes pieces of at most `limit` bytes.
  private func decode(
    _ file: [UInt8], feed: Int, limit: Int, dictionary: ZstdDictionary? = nil
  ) throws(FormatError) -> [UInt8] {
    let decoder = ZstdStreamDecoder(dictionary: dictionary)
    var whole: [UInt8] = []
    var offset = 0
    while offset < file.count {
      let end = min(offset + feed, file.count)
      while true {
        var piece: [UInt8] = []
        let input = try file.rawSpan.slice(offset, end - offset)
        let step = try decoder.decode(input, appendingTo: &piece, atMost: limit)
        #expect(piece.count <= limit)
        whole += piece
        offset += step.consumed
        if step.needsInput { break }
      }
      #expect(offset == end)
    }
    try decoder.finish()
    return whole
  }

  private func encode(
    _ source: [UInt8], feed: Int, level: Int32 = 3, dictionary: ZstdDictionary? = nil
  ) throws(FormatError) -> [UInt8] {
    let encoder = ZstdStreamEncoder(level: level, dictionary: dictionary)
    var file: [UInt8] = []
    var offset = 0
    while offset < source.count {
      let count = min(feed, source.count - offset)
      encoder.encode(try source.rawSpan.slice(offset, count), appendingTo: &file)
      offset += count
    }
    encoder.finish(appendingTo: &file)
    return file
  }

  @Test("a file comes back whatever the sizes of the pieces")
  func roundTrip() throws {
    let source = ZstdTests.text(4_000)
    for feed in [1_000, 65_536, Int.max / 2] {
      let file = try encode(source, feed: feed)
      #expect(file.count * 3 < source.count)
      for (fed, limit) in [(1, 1_000), (7, 65_536), (1_000_000, 1_000), (1_000_000, 1 << 30)] {
        #expect(try decode(file, feed: fed, limit: limit) == source)
      }
    }
    let dictionary = try ZstdDictionary(ZstdTests.text(5), level: 3)
    let file = try encode(source, feed: 5_000, dictionary: dictionary)
    #expect(try decode(file, feed: 100, limit: 100, dictionary: dictionary) == source)
  }

  @Test("output that ends just where the limit does needs no more input")
  func exactLimit() throws {
    let source = ZstdTests.text(100)
    let file = try encode(source, feed: 1_000)
    #expect(try decode(file, feed: file.count, limit: source.count) == source)
    #expect(try decode(file, feed: file.count, limit: 1) == source)
  }

  @Test("frames one after the other, with empty and skippable ones between, are one stream")
  func concatenated() throws {
    let a = ZstdTests.text(10)
    let skippable: [UInt8] = [0x5A, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 1, 2, 3]
    let empty = try encode([], feed: 1)
    let frame = try encode(a, feed: 100)
    let file = skippable + frame + empty + skippable + frame
    for fed in [1, 2, 3, 5, 1_000] {
      #expect(try decode(file, feed: fed, limit: 512) == a + a, "fed \(fed) bytes at a time")
    }
  }

  @Test("a file cut anywhere but between frames is an error at the end")
  func truncated() throws {
    let source = ZstdTests.text(5)
    let frame = try encode(source, feed: 100)
    let file = frame + frame
    for count in 0..<file.count {
      let cut = Array(file[..<count])
      if count == frame.count {
        #expect(try decode(cut, feed: 50, limit: 100) == source)
      } else {
        #expect(throws: FormatError.self, "cut at \(count)") {
          try decode(cut, feed: 50, limit: 100)
        }
      }
    }
  }

  @Test("one flipped bit is noticed, thanks to the checksum")
  func damaged() throws {
    let source = ZstdTests.text(50)
    let file = try encode(source, feed: 1_000)
    for offset in 0..<file.count {
      var damaged = file
      damaged[offset] ^= 0x10
      let decoded = try? decode(damaged, feed: 64, limit: 1_000)
      #expect(decoded == nil || decoded == source, "byte \(offset)")
    }
  }

  @Test("a window beyond the limit, an older format and text are refused")
  func refused() throws {
    // Frame header: no content size, window descriptor for 2^31 bytes; then an empty last block.
    let wide: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD, 0x00, (31 - 10) << 3, 0x01, 0x00, 0x00]
    let narrow: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD, 0x00, (27 - 10) << 3, 0x01, 0x00, 0x00]
    let old: [UInt8] = [0x27, 0xB5, 0x2F, 0xFD, 0x00, 0x58, 0x01, 0x00, 0x00]
    #expect(throws: FormatError.self) { try decode(wide, feed: 100, limit: 100) }
    for bytes in [old, Array("{\"key\": 1}".utf8)] {
      #expect(throws: FormatError("no zstd frame")) { try decode(bytes, feed: 3, limit: 100) }
    }
    #expect(try decode(narrow, feed: 100, limit: 100) == [])
  }
}
