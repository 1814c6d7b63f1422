/// Keys and values of a run of writes, made before the clock runs and handed to every engine from
/// the same memory.
final class Records: @unchecked Sendable {
  let count: Int
  let indices: [UInt32]
  private let keys: UnsafeMutableRawPointer
  private let values: UnsafeMutableRawPointer
  private let starts: [Int]

  /// - Parameter revision: what each value says of itself, so that no write repeats one.
  init(_ values: Values, indices: [UInt32], revision: Int) {
    count = indices.count
    self.indices = indices
    var starts = [0]
    starts.reserveCapacity(count + 1)
    for index in indices { starts.append(starts[starts.count - 1] + values.length(Int(index))) }
    let keys = UnsafeMutableRawPointer.allocate(
      byteCount: count * KeyText.byteCount + 16, alignment: 16)
    let bytes = UnsafeMutableRawPointer.allocate(
      byteCount: starts[count] + 16, alignment: 16)
    for place in 0..<count {
      KeyText.write(Int(indices[place]), to: keys + place * KeyText.byteCount)
      _ = values.write(Int(indices[place]), revision: revision, to: bytes + starts[place])
    }
    self.keys = keys
    self.values = bytes
    self.starts = starts
  }

  deinit {
    keys.deallocate()
    values.deallocate()
  }

  /// Bytes of keys and values.
  var rawBytes: Int { starts[count] + count * KeyText.byteCount }

  @inline(__always)
  func key(_ place: Int) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: keys + place * KeyText.byteCount, count: KeyText.byteCount)
  }

  @inline(__always)
  func value(_ place: Int) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(
      start: values + starts[place], count: starts[place + 1] - starts[place])
  }
}
