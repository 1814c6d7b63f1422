import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Compression of a batch on two threads") struct BlockPackerTests {
  private let contexts = ZstdContexts()
  private let text = [UInt8](repeating: 1, count: 40_000) + [UInt8](repeating: 2, count: 40_000)
  private let noise: [UInt8]

  init() {
    var random = SeededGenerator(seed: 5)
    noise = (0..<80_000).map { _ in UInt8.random(in: 0...255, using: &random) }
  }

  /// Values of all lengths, some of which do not compress.
  private func values(_ random: inout SeededGenerator) -> [[UInt8]] {
    (0..<Int.random(in: 1...200, using: &random)).map { number in
      let length =
        switch number % 23 {
        case 3: Int.random(in: 16_000...70_000, using: &random)
        case 5, 6: 0
        default: Int.random(in: 1...900, using: &random)
        }
      let start = Int.random(in: 0..<80_000 - length, using: &random)
      let source = Int.random(in: 0..<4, using: &random) == 0 ? noise : text
      return Array(source[start..<start + length])
    }
  }

  private func add(_ values: [[UInt8]], to builder: inout FrameBuilder) {
    for (number, value) in values.enumerated() {
      let entry = FrameBuilder.Entry(
        kind: .put, endsBatch: false, sequence: builder.lastSequence + 1, commitTime: 5)
      builder.append(
        entry, key: bytes("key \(number)").rawSpan, value: value.rawSpan,
        attributes: [UInt8]().rawSpan)
    }
  }

  private func finish(
    _ builder: FrameBuilder, level: Int32? = FrameCodecs.fastLevel
  ) throws -> [UInt8] {
    var (builder, output): (FrameBuilder, [UInt8]) = (builder, [])
    _ = try builder.finish(
      appendingTo: &output, offset: 64, salt: 1, durableThrough: 0, level: level,
      codecs: FrameCodecs(contexts: contexts))
    return output
  }

  @Test("frames are the same whoever compresses", arguments: 1...6 as ClosedRange<UInt64>)
  func same(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let packer = BlockPacker(contexts: contexts)
    defer { packer.stop() }
    for round in 0..<8 {
      let packing = packer.begin()
      let batch = (0..<3).map { _ in values(&random) }
      let frames = batch.map { values in
        var (alone, helped) = (FrameBuilder(), FrameBuilder(packing: packing))
        add(values, to: &alone)
        add(values, to: &helped)
        return (alone, helped)
      }
      for (alone, helped) in frames {
        #expect(try finish(helped) == finish(alone), "seed \(seed), round \(round)")
        // The same frame again, whose blocks were fetched; and as it is when it stays raw.
        #expect(try finish(helped) == finish(alone), "seed \(seed), round \(round)")
        #expect(try finish(helped, level: nil) == finish(alone, level: nil), "seed \(seed)")
      }
      if round % 2 == 0 { packer.finish() }
    }
    #expect(packer.isStarted)
  }

  @Test("a block that takes the helper long is compressed by the writer, who does not wait")
  func busyHelper() throws {
    let packer = BlockPacker(contexts: contexts)
    defer { packer.stop() }
    var raw: [UInt8] = []
    for part in 0..<100 { raw += noise + [UInt8(part)] }
    let long = raw.count
    raw += [UInt8](repeating: 7, count: 40_000)
    let lengths = [long, 10_000, 10_000, 10_000, 10_000]
    for _ in 0..<2 {
      var frame = packer.begin()
      frame.offer(raw, lengths)
      try frame.complete()
      // One of them may be the helper's, where the writer had to wait for a processor.
      let fetched = (1..<lengths.count).compactMap { frame.fetch($0)?.codec }
      #expect(fetched.count >= lengths.count - 2 && fetched.allSatisfy { $0 == .zstd })
      #expect(frame.fetch(lengths.count) == nil)
    }
  }

  @Test("a block of a batch that is over is not taken for one of the next")
  func batches() throws {
    let packer = BlockPacker(contexts: contexts)
    defer { packer.stop() }
    let codecs = FrameCodecs(contexts: contexts)
    var long: [UInt8] = []
    let digits = noise.map { $0 & 15 }
    for part in 0..<190 { long += digits[(part * 7)...] + noise[..<part] }
    for number in 1...5 {
      var former = packer.begin()
      former.offer(long, [long.count])
      while packer.waiting > 0 {}
      // The helper is at a block that nobody wants any more, and then at this one.
      var frame = packer.begin()
      #expect(former.fetch(0) == nil)
      frame.offer([UInt8](repeating: UInt8(number), count: 2_000), [2_000])
      while packer.waiting > 0 {}
      try frame.complete()
      var packed: BlockPacker.Packed?
      while packed == nil { packed = frame.fetch(0) }
      let bytes = packed?.bytes ?? []
      let found = try codecs.decode(bytes.rawSpan, codec: .zstd, rawLength: 2_000)
      #expect(found == [UInt8](repeating: UInt8(number), count: 2_000))
    }
  }

  @Test("so many blocks are offered and no more, and the rest is compressed all the same")
  func limit() throws {
    let packer = BlockPacker(contexts: contexts)
    defer { packer.stop() }
    let raw = [UInt8](repeating: 1, count: Limits.bytesToPack + 40_000)
    let lengths = [Limits.bytesToPack - 20_000, 20_000, 20_000, 20_000]
    var frame = packer.begin()
    frame.offer(raw, lengths)
    try frame.complete()
    #expect(frame.fetch(2) == nil)
    #expect(frame.fetch(3) == nil)
    var next = packer.begin()
    next.offer(raw, [20_000])
    try next.complete()
    packer.stop()
    var late = packer.begin()
    late.offer(raw, [20_000])
    try late.complete()
    #expect(late.fetch(0) == nil)
  }
}
