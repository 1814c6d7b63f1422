/// A change that a version of a program makes to the parts of an object.
struct VersionEdit<Version: ProgramVersion> {
  typealias Item = VersionItem<Version>
  typealias Part = VersionPart<Version>

  private var generator: SeededGenerator

  init(_ generator: SeededGenerator) { self.generator = generator }

  /// Names are few, so that parts are alike.
  private mutating func name() -> Int { generator.int(in: 0...5) }

  mutating func part(serial: Int = -1) -> Part {
    Part(
      id: Version.shape.knowsIDs && generator.chance(0.5) ? generator.int(in: 0...99) : nil,
      name: name(), serial: serial)
  }

  /// Fills an object with parts that have serials of their own.
  mutating func fill(_ item: inout Item, serials: inout Int) {
    var parts = Item.Containers()
    func next() -> Int {
      serials += 1
      return serials
    }
    for _ in 0..<generator.int(in: 0...4) { parts.list.append(part(serial: next())) }
    for _ in 0..<generator.int(in: 0...4) { parts.set.insert(part(serial: next())) }
    for _ in 0..<generator.int(in: 0...3) {
      parts.names["\(generator.int(in: 0...3))"] = part(serial: next())
      parts.keys[VersionKey.allCases[generator.int(in: 0...2)]] = part(serial: next())
      parts.grid.append((0..<generator.int(in: 0...3)).map { _ in part(serial: next()) })
    }
    if generator.chance(0.7) { parts.one = part(serial: next()) }
    if generator.chance(0.7) { parts.two = part(serial: next()) }
    if generator.chance(0.7) { parts.choice = .left(part(serial: next())) }
    item.parts = parts
  }

  /// Changes an object once.
  mutating func apply(to item: inout Item) {
    switch generator.int(in: 0...7) {
    case 0: item.title = generator.int(in: 0...3)
    case 1: editList(&item.parts.list)
    case 2:
      if generator.chance(0.5) {
        item.parts.set.insert(part())
      } else {
        item.parts.set.remove(part())
      }
    case 3: editNames(&item.parts)
    case 4: editKeys(&item.parts)
    case 5: editGrid(&item.parts.grid)
    case 6: editProperties(&item.parts)
    default:
      switch item.parts.choice {
      case .left(var part) where generator.chance(0.5):
        part.name = name()
        item.parts.choice = .left(part)
      case nil: break
      default: item.parts.choice = .right(part())
      }
    }
  }

  private mutating func editList(_ list: inout [Part]) {
    switch generator.int(in: 0...3) {
    case 0: list.reverse()
    case 1: list.append(part())
    case 2: if !list.isEmpty { list.removeFirst() }
    default: if !list.isEmpty { list[list.count / 2].name = name() }
    }
  }

  private mutating func editNames(_ parts: inout Item.Containers) {
    let (one, other) = ("\(generator.int(in: 0...3))", "\(generator.int(in: 0...3))")
    let (first, second) = (parts.names[one], parts.names[other])
    switch generator.int(in: 0...3) {
    case 0: (parts.names[one], parts.names[other]) = (second, first)
    case 1: parts.names[one] = second
    case 2: parts.names[one] = nil
    default:
      guard first != nil else { return }
      parts.names[one]?.name = name()
    }
  }

  private mutating func editKeys(_ parts: inout Item.Containers) {
    let key = VersionKey.allCases[generator.int(in: 0...2)]
    switch generator.int(in: 0...2) {
    case 0: (parts.keys[.a], parts.keys[.b]) = (parts.keys[.b], parts.keys[.a])
    case 1: parts.keys[key] = parts.keys[key] == nil ? part() : nil
    default:
      guard parts.keys[key] != nil else { return }
      parts.keys[key]?.name = name()
    }
  }

  private mutating func editGrid(_ grid: inout [[Part]]) {
    guard let last = grid.indices.last else { return grid.append([part()]) }
    if generator.chance(0.5), let moved = grid[last].popLast() {
      grid[0].append(moved)
    } else {
      grid.reverse()
      grid[0].append(part())
    }
  }

  private mutating func editProperties(_ parts: inout Item.Containers) {
    switch generator.int(in: 0...2) {
    case 0: (parts.one, parts.two) = (parts.two, parts.one)
    case 1: parts.one = parts.two
    default:
      guard parts.one != nil else { return }
      parts.one?.name = name()
    }
  }
}
