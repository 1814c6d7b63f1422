internal import TidemarkEngine

/// Loads a dictionary, decompresses a frame with it, and trains another. The body is a u16 length
/// of the dictionary, the dictionary, and a frame. Options: bit 1, the rest is no frame but a
/// text, which must be the same after it was compressed and decompressed; bit 2, the rest is
/// samples to train on; bit 3, the frame is streamed.
enum DictionaryFuzz {
  private static let decompressor = ZstdContexts()
  /// More than any input gives honestly; what says that it is longer is refused.
  private static let rawBytes = 64 << 10

  static func run(_ input: FuzzInput) throws(FuzzFinding) {
    let length = Int(input.body.word16(0))
    let bytes = input.slice(2, length)
    let rest = input.slice(2 + length, input.body.count)
    if input.flag(2) { return try train(rest, input.body) }
    let dictionary = try? ZstdDictionary(bytes, level: FrameCodecs.fastLevel)
    if input.flag(1) {
      guard let dictionary else { return }
      return try roundTrip(rest, dictionary)
    }
    if input.flag(3) { return stream(rest, dictionary) }
    var frame = rest
    if input.repairs { frame.set(UInt32(0xfd2f_b528), at: 0) }
    let codecs = FrameCodecs(contexts: decompressor, dictionary: dictionary)
    // The length that a block table would tell.
    for wanted in [Int(frame.word16(frame.count - 2)), 16 << 10, rawBytes] {
      let codec = dictionary == nil ? Codec.zstd : .zstdDictionary
      guard let raw = try? codecs.decode(frame.rawSpan, codec: codec, rawLength: wanted) else {
        continue
      }
      guard raw.count == wanted else { throw FuzzFinding("content of another length") }
    }
  }

  private static func stream(_ bytes: [UInt8], _ dictionary: ZstdDictionary?) {
    let decoder = ZstdStreamDecoder(windowLogMax: 20, dictionary: dictionary)
    var output: [UInt8] = []
    var offset = 0
    // Every turn takes input or gives output; both are bounded.
    while offset <= bytes.count, output.count < 1 << 20 {
      let end = min(bytes.count, offset + 37)
      guard
        let step = try? decoder.decode(
          bytes.rawSpan.extracting(offset..<end), appendingTo: &output, atMost: 4096)
      else { return }
      offset += step.consumed
      if step.needsInput, offset == bytes.count { break }
    }
    try? decoder.finish()
  }

  private static func roundTrip(
    _ text: [UInt8], _ dictionary: ZstdDictionary
  ) throws(FuzzFinding) {
    let codecs = FrameCodecs(contexts: decompressor, dictionary: dictionary)
    var stored: [UInt8] = []
    guard
      let codec = try? codecs.encode(
        text.rawSpan, level: FrameCodecs.fastLevel, appendingTo: &stored)
    else { return }
    let raw = try? codecs.decode(stored.rawSpan, codec: codec, rawLength: text.count)
    guard raw == text else { throw FuzzFinding("a text changes with the dictionary") }
  }

  /// Trains on samples whose lengths are drawn from the input's first bytes.
  private static func train(_ samples: [UInt8], _ sizes: [UInt8]) throws(FuzzFinding) {
    var lengths: [Int] = []
    var total = 0
    for byte in sizes {
      // Mostly lengths that are trained on, now and then one that is refused.
      let length = byte == 0 ? 0 : 7 + Int(byte)
      guard total + length <= samples.count, lengths.count < 4096 else { break }
      lengths.append(length)
      total += length
    }
    let trained = ZstdDictionary.trainDictionary(
      samples: samples, sampleSizes: lengths, capacity: 1024)
    guard let trained else { return }
    guard trained.count <= 1024 else { throw FuzzFinding("a dictionary beyond its bound") }
    guard let dictionary = try? ZstdDictionary(trained, level: FrameCodecs.fastLevel) else {
      throw FuzzFinding("a trained dictionary cannot be loaded")
    }
    try roundTrip(samples, dictionary)
  }

  // MARK: Seeds

  static func seeds() -> [[UInt8]] {
    var texts: [UInt8] = []
    var sizes: [Int] = []
    for number in 0..<160 {
      let text = Array("{\"id\":\(number * 7919),\"title\":\"note \(number % 13)\"}".utf8)
      texts += text
      sizes.append(text.count)
    }
    let trained =
      ZstdDictionary.trainDictionary(samples: texts, sampleSizes: sizes, capacity: 512) ?? []
    let plain = Array("{\"id\":,\"title\":\"note \"}".utf8)
    var seeds: [[UInt8]] = []
    for dictionary in [trained, plain] {
      let start: [UInt8] = [UInt8(dictionary.count & 255), UInt8(dictionary.count >> 8)]
      let front = start + dictionary
      let text = Array(texts.prefix(600))
      seeds.append([3] + front + text)
      guard let loaded = try? ZstdDictionary(dictionary, level: FrameCodecs.fastLevel) else {
        continue
      }
      let codecs = FrameCodecs(contexts: decompressor, dictionary: loaded)
      var frame: [UInt8] = []
      _ = try? codecs.encode(text.rawSpan, level: FrameCodecs.fastLevel, appendingTo: &frame)
      seeds.append([1] + front + frame)
      seeds.append([8] + front + frame)
    }
    seeds.append([4, 0, 0] + texts)
    return seeds
  }
}
