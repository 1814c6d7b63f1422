import Testing
import TidemarkEngine

@Suite struct ZstdTests {
  /// Text that compresses about as well as documents do.
  static func records(_ count: Int, seed: UInt64 = 1) -> [[UInt8]] {
    var generator = SplitMix(state: seed)
    return (0..<count).map { i in
      Array(
        """
        {"id":\(i),"name":"customer \(generator.next() % 1000)","city":"Utrecht",\
        "balance":\(generator.next() % 100_000),"active":\(i % 3 == 0)}
        """.utf8)
    }
  }

  static func text(_ count: Int) -> [UInt8] { Array(records(count).joined()) }

  @Test("compressed bytes come back, at every level sort and length")
  func roundTrip() throws {
    let decompressor = ZstdDecompressor()
    let all = Self.text(2_000)
    for level: Int32 in [-5, 1, 3, 19, 1_000] {
      let compressor = ZstdCompressor(level: level)
      for count in [0, 1, 100, 255, 256, 65_536, all.count] {
        let source = Array(all[..<count])
        var frame: [UInt8] = [7]
        let length = try compressor.compress(source.rawSpan, appendingTo: &frame)
        #expect(frame.count == length + 1 && frame[0] == 7)
        frame.removeFirst()
        var output: [UInt8] = [1, 2, 3]
        try decompressor.decompress(frame.rawSpan, into: &output, rawCount: count)
        #expect(output == source)
        var filled = [UInt8](repeating: 9, count: count)
        try filled.withMutableRawSpan { (span) throws(FormatError) in
          try decompressor.decompress(frame.rawSpan, into: &span)
        }
        #expect(filled == source)
      }
    }
  }

  @Test("a wrong raw length is refused, longer or shorter")
  func wrongLength() throws {
    let source = Self.text(10)
    var frame: [UInt8] = []
    try ZstdCompressor(level: 3).compress(source.rawSpan, appendingTo: &frame)
    let decompressor = ZstdDecompressor()
    var output: [UInt8] = []
    for count in [-1, 0, source.count - 1, source.count + 1, Int.max] {
      #expect(throws: FormatError.self) {
        try decompressor.decompress(frame.rawSpan, into: &output, rawCount: count)
      }
    }
    #expect(output.capacity < 1 << 20)
  }

  @Test("a frame that does not state its length cannot make the decoder allocate much")
  func hostileLength() throws {
    let encoder = ZstdStreamEncoder(level: 1)
    var frame: [UInt8] = []
    encoder.encode(Self.text(10).rawSpan, appendingTo: &frame)
    encoder.finish(appendingTo: &frame)
    var output: [UInt8] = []
    #expect(throws: FormatError.self) {
      try ZstdDecompressor().decompress(frame.rawSpan, into: &output, rawCount: 1 << 40)
    }
    #expect(output.capacity < 1 << 20)
  }

  @Test("damaged, cut and foreign frames are refused or give the stated length")
  func hostileFrames() throws {
    var generator = SplitMix(state: 3)
    let source = Self.text(50)
    var frame: [UInt8] = []
    try ZstdCompressor(level: 3).compress(source.rawSpan, appendingTo: &frame)
    let decompressor = ZstdDecompressor()
    var output: [UInt8] = []
    for count in 0..<frame.count {
      #expect(throws: FormatError.self) {
        try decompressor.decompress(
          Array(frame[..<count]).rawSpan, into: &output, rawCount: source.count)
      }
    }
    for _ in 0..<2_000 {
      var damaged = frame
      damaged[Int(generator.next() % UInt64(frame.count))] ^= 1 << UInt8(generator.next() % 8)
      do throws(FormatError) {
        try decompressor.decompress(damaged.rawSpan, into: &output, rawCount: source.count)
        #expect(output.count == source.count)
      } catch {}
    }
    let skippable: [UInt8] = [0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0]
    for foreign in [frame + [0], frame + frame, frame + skippable, skippable + frame] {
      #expect(throws: FormatError.self) {
        try decompressor.decompress(foreign.rawSpan, into: &output, rawCount: source.count)
      }
    }
  }

  @Test("frames hold neither checksum nor dictionary id")
  func bareFrames() throws {
    let samples = Self.records(2_000)
    let trained = try #require(
      ZstdDictionary.trainDictionary(
        samples: Array(samples.joined()), sampleSizes: samples.map(\.count), capacity: 4_096))
    let dictionary = try ZstdDictionary(trained, level: 3)
    let compressor = ZstdCompressor(level: 3, dictionary: dictionary)
    var frame: [UInt8] = []
    let sample = samples[0]
    try compressor.compress(sample.rawSpan, appendingTo: &frame)
    // Frame header descriptor: bits 0-1 dictionary id, bit 2 checksum.
    #expect(frame[4] & 0b111 == 0)
  }

  @Test("a trained dictionary makes single records much smaller, prepared or not")
  func dictionaries() throws {
    let samples = Self.records(2_000)
    let trained = try #require(
      ZstdDictionary.trainDictionary(
        samples: Array(samples.joined()), sampleSizes: samples.map(\.count), capacity: 16_384))
    #expect(trained.count <= 16_384)
    let record = Self.records(3_000, seed: 5)[2_999]
    let reader = try ZstdDictionary(trained)
    let decompressor = ZstdDecompressor()
    var alone: [UInt8] = []
    try ZstdCompressor(level: 3).compress(record.rawSpan, appendingTo: &alone)
    for level: Int32? in [3, 9, nil] {
      let writer = try ZstdDictionary(trained, level: level)
      var frame: [UInt8] = []
      try ZstdCompressor(level: 3, dictionary: writer)
        .compress(record.rawSpan, appendingTo: &frame)
      #expect(frame.count * 2 < alone.count)
      var output: [UInt8] = []
      try decompressor.decompress(
        frame.rawSpan, into: &output, rawCount: record.count, dictionary: reader)
      #expect(output == record)
      #expect(throws: FormatError.self) {
        try decompressor.decompress(frame.rawSpan, into: &output, rawCount: record.count)
      }
    }
  }

  @Test("training refuses samples that do not add up or are too few")
  func training() {
    let samples = Self.records(100)
    let bytes = Array(samples.joined())
    let sizes = samples.map(\.count)
    func train(_ samples: [UInt8], _ sizes: [Int], _ capacity: Int) -> [UInt8]? {
      ZstdDictionary.trainDictionary(samples: samples, sampleSizes: sizes, capacity: capacity)
    }
    #expect(train(bytes, sizes + [1], 1_024) == nil)
    #expect(train(bytes, [-1] + sizes, 1_024) == nil)
    #expect(train(bytes, [.max, .max], 1_024) == nil)
    #expect(train([], [], 1_024) == nil)
    #expect(train([1], [1], 1_024) == nil)
    #expect(train(bytes, [Int](repeating: 0, count: 8) + [bytes.count], 1_024) == nil)
    #expect(train(bytes, sizes, 0) == nil)
    #expect(train(bytes, sizes, .max) == nil)
  }

  @Test("an empty, oversized or damaged dictionary is refused")
  func badDictionaries() {
    let header: [UInt8] = [0x37, 0xA4, 0x30, 0xEC, 1, 0, 0, 0]
    for bytes in [[], header + [UInt8](repeating: 0xFF, count: 300)] {
      #expect(throws: FormatError.self) { try ZstdDictionary(bytes) }
      #expect(throws: FormatError.self) { try ZstdDictionary(bytes, level: 3) }
    }
    let long = [UInt8](repeating: 1, count: Limits.dictionaryBytes + 1)
    #expect(throws: FormatError.self) { try ZstdDictionary(long) }
  }

  @Test("contexts are kept up to the limit and serve many threads at once")
  func contexts() throws {
    let contexts = ZstdContexts(limit: 2)
    let dictionary = try ZstdDictionary(Self.text(3), level: 3)
    let failures = Lock(0)
    let threads = try (0..<4).map { number in
      try WorkerThread(name: "zstd \(number)") {
        for (i, record) in Self.records(200, seed: UInt64(number)).enumerated() {
          let used = i % 2 == 0 ? dictionary : nil
          do throws(FormatError) {
            var frame: [UInt8] = []
            var output: [UInt8] = []
            try contexts.withCompressor(level: 3, dictionary: used) {
              (compressor) throws(FormatError) in
              _ = try compressor.compress(record.rawSpan, appendingTo: &frame)
            }
            try contexts.withDecompressor { (decompressor) throws(FormatError) in
              try decompressor.decompress(
                frame.rawSpan, into: &output, rawCount: record.count, dictionary: used)
            }
            if output != record { failures.withLock { $0 += 1 } }
          } catch {
            failures.withLock { $0 += 1 }
          }
        }
      }
    }
    for thread in threads { thread.join() }
    #expect(failures.withLock { $0 } == 0)
    func use(_ depth: Int) {
      if depth > 0 { contexts.withDecompressor { _ in use(depth - 1) } }
      if depth > 0 { contexts.withCompressor(level: Int32(depth)) { _ in use(depth - 1) } }
    }
    use(4)
    #expect(contexts.idleCount == 4)
  }
}
