extension BitSweep {
  /// Something that happens to files behind the store's back.
  package enum Damage: Sendable, Hashable, CustomStringConvertible {
    case flip(String, bit: Int)
    case cut(String, to: Int)
    /// Zeros from an offset to the end.
    case zeroTail(String, from: Int)
    /// Bytes from another part of the file from an offset to the end.
    case staleTail(String, from: Int)
    /// Two files with each other's bytes.
    case swap(String, String)
    /// One file with another's bytes.
    case copy(String, over: String)
    /// A range of bytes at another place of the file as well.
    case misdirect(String, from: Int, to: Int, count: Int)
    /// Two ranges of equal length with each other's bytes.
    case exchange(String, Int, Int, count: Int)
    case remove(String)

    package var description: String {
      switch self {
      case .flip(let path, let bit): "bit \(bit % 8) of byte \(bit / 8) of \(path)"
      case .cut(let path, let length): "\(path) cut to \(length)"
      case .zeroTail(let path, let from): "\(path) zero from \(from)"
      case .staleTail(let path, let from): "\(path) stale from \(from)"
      case .swap(let a, let b): "\(a) and \(b) swapped"
      case .copy(let a, let b): "\(a) over \(b)"
      case .misdirect(let path, let from, let to, let count):
        "\(path), \(count) bytes of \(from) at \(to)"
      case .exchange(let path, let a, let b, let count):
        "\(path), \(count) bytes of \(a) and \(b) exchanged"
      case .remove(let path): "\(path) removed"
      }
    }

    /// The kind that it counts as.
    package var kind: String {
      switch self {
      case .flip: "flips"
      case .cut: "cuts"
      case .zeroTail: "zero tails"
      case .staleTail: "stale tails"
      case .swap: "swaps"
      case .copy: "copies"
      case .misdirect: "misdirected blocks"
      case .exchange: "exchanges"
      case .remove: "removals"
      }
    }

    /// The files that it touches.
    var paths: [String] {
      switch self {
      case .flip(let path, _), .cut(let path, _), .zeroTail(let path, _),
        .staleTail(let path, _), .misdirect(let path, _, _, _), .exchange(let path, _, _, _),
        .remove(let path), .copy(_, let path):
        [path]
      case .swap(let a, let b): [a, b]
      }
    }

    /// Carries it out.
    /// - Returns: false when it changes nothing.
    func inflict(
      on disk: SimulatedFileSystem, _ files: [(path: String, bytes: [UInt8])]
    ) -> Bool {
      func bytes(_ path: String) -> [UInt8] { files.first { $0.path == path }?.bytes ?? [] }
      switch self {
      case .flip(let path, let bit): return disk.flipBit(bit, inFile: path)
      case .cut(let path, let length): return disk.cut(path, to: length)
      case .zeroTail(let path, let from):
        let tail = bytes(path).dropFirst(from)
        guard tail.contains(where: { $0 != 0 }) else { return false }
        return disk.overwrite(path, at: from, with: tail.map { _ in 0 })
      case .staleTail(let path, let from):
        let all = bytes(path)
        let tail = all.dropFirst(from)
        let stale = Array(all[(from / 2)..<(from / 2 + tail.count / 2)])
        guard !stale.isEmpty, Array(tail.prefix(stale.count)) != stale else { return false }
        return disk.overwrite(path, at: from, with: stale)
      case .swap(let a, let b):
        guard bytes(a) != bytes(b) else { return false }
        return disk.replace(a, with: bytes(b)) && disk.replace(b, with: bytes(a))
      case .copy(let a, let b):
        guard bytes(a) != bytes(b) else { return false }
        return disk.replace(b, with: bytes(a))
      case .misdirect(let path, let from, let to, let count):
        let all = bytes(path)
        guard Array(all[from..<(from + count)]) != Array(all[to..<(to + count)]) else {
          return false
        }
        return disk.overwrite(path, at: to, with: Array(all[from..<(from + count)]))
      case .exchange(let path, let a, let b, let count):
        let all = bytes(path)
        let first = Array(all[a..<(a + count)])
        let second = Array(all[b..<(b + count)])
        guard first != second else { return false }
        return disk.overwrite(path, at: a, with: second) && disk.overwrite(path, at: b, with: first)
      case .remove(let path): return disk.erase(path)
      }
    }

    /// Whether it touches a file at or behind an offset, or shortens it.
    func reaches(_ path: String, from offset: Int) -> Bool {
      guard paths.contains(path) else { return false }
      switch self {
      case .flip(_, let bit): return bit / 8 >= offset
      case .misdirect(_, _, let to, let count): return to + count > offset
      case .exchange(_, let a, let b, let count): return max(a, b) + count > offset
      default: return true
      }
    }

    /// Whether it touches the log.
    func isInSealedLog(_ files: [(path: String, bytes: [UInt8])]) -> Bool {
      paths.allSatisfy { $0.hasSuffix(".seg") }
    }
  }

  /// Damage of every kind but flips and cuts, made up from a seed.
  package func somethingElse(_ generator: inout SeededGenerator) -> Damage {
    let candidates = files.filter { $0.bytes.count > 64 }
    guard let (path, bytes) = generator.pick(candidates) else { return flip(0) }
    let other = generator.pick(candidates)?.path ?? path
    let unit = generator.pick([8, 64, 512, 4096]) ?? 512
    let places = bytes.count / unit
    let count = min(unit, bytes.count)
    let from = generator.int(below: places) * unit
    let to = generator.int(below: places) * unit
    let fits = from + count <= bytes.count && to + count <= bytes.count
    switch generator.int(below: 7) {
    case 0: return .zeroTail(path, from: generator.int(below: bytes.count))
    case 1: return .staleTail(path, from: generator.int(below: bytes.count))
    case 2: return .swap(path, other)
    case 3: return .copy(path, over: other)
    case 4 where fits && abs(from - to) >= count: return .exchange(path, from, to, count: count)
    case 5: return .remove(path)
    default: return fits ? .misdirect(path, from: from, to: to, count: count) : .remove(path)
    }
  }
}
