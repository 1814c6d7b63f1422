/// Some of the values that a compaction rewrites, spread over all of them: what a dictionary is
/// trained on before the first value is written.
struct ValueSamples {
  private(set) var values: [UInt8] = []
  /// Where each value stands in `values`.
  private(set) var places: [Range<Int>] = []
  /// About how many bytes all values have.
  private(set) var total = 0
  /// One entry in so many is taken: all bytes by those aimed at, so that the samples have about
  /// `dictionarySampleBytes`.
  private let step: Int
  private var met = 0

  /// - Parameter rawBytes: of everything that is rewritten.
  init(rawBytes: Int) { step = max(1, rawBytes / Limits.dictionarySampleBytes) }

  mutating func note(_ value: RawSpan) {
    total += value.byteCount
    met += 1
    guard (met - 1) % step == 0 else { return }
    take(value)
  }

  private mutating func take(_ value: RawSpan) {
    // Those taken may be longer than the others, up to twice what is aimed at.
    let room = 2 * Limits.dictionarySampleBytes - values.count
    let length = min(value.byteCount, room)
    guard length > 0 else { return }
    places.append(values.count..<(values.count + length))
    values.append(copying: value.extracting(0..<length))
  }

  /// So many frames of a compacted segment are looked at.
  private static let frames = 64

  /// Takes some values of a compacted segment, which is read only when it is merged. History is
  /// written without the dictionary.
  /// - Parameter rawBytes: of its entries.
  mutating func look(into segment: Segment, rawBytes: Int) throws(TidemarkError) {
    let records = try segment.frames(ofHistory: false)
    var frames = try FrameReader(segment, windowBytes: 64 << 10)
    total += rawBytes
    let stride = max(1, records.count / Self.frames)
    let entries = records.reduce(0) { $0 + Int($1.entryCount) }
    // One frame in `stride` is read, so that the step is as many times shorter.
    let step = max(1, self.step / stride)
    // What `step` does not divide is passed over first: a segment of fewer entries gives no value.
    var next = entries % step
    for (i, record) in records.enumerated() where i % stride == 0 {
      let front = try frames.front(record)
      while next < front.entries.count {
        let head = front.entries[next]
        next += step
        guard head.hasValue else { continue }
        var value: [UInt8] = []
        try frames.appendValue(of: head, in: front, to: &value)
        take(value.rawSpan)
      }
      next -= front.entries.count
    }
  }
}
