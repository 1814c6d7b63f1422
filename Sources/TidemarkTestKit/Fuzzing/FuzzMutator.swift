/// Changes inputs by chance, as a fuzzer does, for runs without one.
///
/// ```swift
/// var mutator = FuzzMutator(seed: 42)
/// try FuzzTarget.frame.run(mutator.mutate(seeds[0], with: seeds))
/// ```
public struct FuzzMutator: Sendable {
  private static let longest = 64 << 10
  private static let interesting: [UInt64] = [
    0, 1, 2, 7, 8, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x1_0000, 0x7fff_ffff,
    0x8000_0000, 0xffff_ffff, 1 << 47, (1 << 48) - 1, 1 << 48, 1 << 62, .max >> 1, .max,
  ]

  private var random: SeededGenerator

  /// Creates a mutator that changes inputs at random.
  /// - Parameter seed: any number; equal seeds give equal changes.
  public init(seed: UInt64) { random = SeededGenerator(seed: seed) }

  /// Returns an input with one to six changes: flipped bits, replaced bytes, extreme numbers,
  /// removed or repeated pieces, or a piece of another input.
  /// - Parameters:
  ///   - input: the input to change.
  ///   - others: inputs from which pieces may be taken.
  /// - Returns: bytes that are hardly longer than the input.
  public mutating func mutate(_ input: [UInt8], with others: [[UInt8]]) -> [UInt8] {
    var bytes = input
    for _ in 0...random.int(below: 6) {
      guard !bytes.isEmpty else { return random.bytes(1 + random.int(below: 40)) }
      change(&bytes, others)
    }
    return Array(bytes.prefix(Self.longest))
  }

  private mutating func change(_ bytes: inout [UInt8], _ others: [[UInt8]]) {
    let place = random.int(below: bytes.count)
    let count = random.int(in: 0...min(64, bytes.count - place))
    switch random.int(below: 8) {
    case 0, 1: bytes[place] ^= 1 << UInt8(random.int(below: 8))
    case 2: bytes[place] = UInt8(truncatingIfNeeded: random.next())
    case 3, 4: setNumber(&bytes, place)
    case 5: bytes.removeSubrange(place..<(place + count))
    case 6: bytes.insert(contentsOf: Array(bytes[place..<(place + count)]), at: place)
    default:
      guard let other = random.pick(others), !other.isEmpty else { return }
      let from = random.int(below: other.count)
      let piece = other[from..<min(other.count, from + count)]
      bytes.replaceSubrange(place..<(place + count), with: piece)
    }
  }

  private mutating func setNumber(_ bytes: inout [UInt8], _ place: Int) {
    let size = [1, 2, 4, 5, 6, 8][random.int(below: 6)]
    guard place + size <= bytes.count else { return }
    var number = random.pick(Self.interesting) ?? 0
    if random.chance(0.3) { number &+= UInt64(truncatingIfNeeded: random.int(in: -3...3)) }
    for i in 0..<size { bytes[place + i] = UInt8(truncatingIfNeeded: number >> UInt64(8 * i)) }
  }
}
