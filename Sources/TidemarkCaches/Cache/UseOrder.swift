/// The entries of a cache in the order of their last use: a list through an array, with the place
/// of each by its sequence.
///
/// An entry takes some 90 bytes, whatever its key.
struct UseOrder: Sendable {
  /// One entry.
  struct Use: Sendable, Hashable {
    /// The newest entry of the key in the log.
    var sequence: UInt64
    /// Bytes of key and value.
    var bytes: Int
    /// Milliseconds since 1970 of its last use.
    var time: Int64
    /// How often it was read.
    var count: UInt32 = 0
    /// How long it is valid; nil while nobody has looked.
    var validity: Validity?
  }

  private struct Node {
    var use: Use
    /// The place of the next older entry, and of the next newer one; -1 for none.
    var older: Int32
    var newer: Int32
  }

  private var nodes: [Node] = []
  private var free: [Int32] = []
  private var places = PlaceTable()
  private var oldest: Int32 = -1
  private var newest: Int32 = -1
  /// Places that were used and have yet to move to the end of the list: each move waits for memory
  /// at four places that have nothing to do with each other, and many wait together.
  private var moving: [Int32] = []
  private static let mostMoving = 64
  /// Bytes of all entries.
  private(set) var bytes = 0

  /// How many entries there are.
  var count: Int { places.count }

  /// The entry that was used least recently.
  var last: Use? {
    mutating get {
      moveUsed()
      return oldest < 0 ? nil : nodes[Int(oldest)].use
    }
  }

  subscript(sequence: UInt64) -> Use? { place(of: sequence).map { nodes[Int($0)].use } }

  private func place(of sequence: UInt64) -> Int32? {
    places.find(sequence) { nodes[Int($0)].use.sequence == sequence }
  }

  /// Adds an entry as the one that was used last.
  mutating func add(_ use: Use) {
    remove(use.sequence)
    moveUsed()
    let place: Int32
    let node = Node(use: use, older: newest, newer: -1)
    if let known = free.popLast() {
      place = known
      nodes[Int(place)] = node
    } else {
      place = Int32(nodes.count)
      nodes.append(node)
    }
    if newest >= 0 { nodes[Int(newest)].newer = place } else { oldest = place }
    newest = place
    places.insert(use.sequence, place)
    bytes += use.bytes
  }

  /// Takes an entry out.
  @discardableResult
  mutating func remove(_ sequence: UInt64) -> Use? {
    guard let place = places.remove(sequence, { nodes[Int($0)].use.sequence == sequence })
    else { return nil }
    moveUsed()
    unlink(place)
    free.append(place)
    let use = nodes[Int(place)].use
    bytes -= use.bytes
    return use
  }

  /// Notes that an entry was read.
  /// - Returns: false when it is not known.
  mutating func use(_ sequence: UInt64, at time: Int64) -> Bool {
    guard let place = place(of: sequence) else { return false }
    use(place, at: time)
    return true
  }

  /// The place of an entry whose validity is remembered, and that.
  func known(_ sequence: UInt64) -> (place: Int32, validity: Validity)? {
    guard let place = place(of: sequence), let validity = nodes[Int(place)].use.validity else {
      return nil
    }
    return (place, validity)
  }

  /// Notes that the entry at a place was read.
  mutating func use(_ place: Int32, at time: Int64) {
    nodes[Int(place)].use.time = time
    if nodes[Int(place)].use.count < .max { nodes[Int(place)].use.count += 1 }
    moving.append(place)
    if moving.count == Self.mostMoving { moveUsed() }
  }

  /// Moves the places that were used to the end of the list, in the order of their uses.
  private mutating func moveUsed() {
    for place in moving where place != newest {
      unlink(place)
      nodes[Int(place)].older = newest
      nodes[Int(place)].newer = -1
      if newest >= 0 { nodes[Int(newest)].newer = place } else { oldest = place }
      newest = place
    }
    moving.removeAll(keepingCapacity: true)
  }

  /// Remembers how long an entry is valid.
  mutating func note(_ validity: Validity, of sequence: UInt64) {
    guard let place = place(of: sequence) else { return }
    nodes[Int(place)].use.validity = validity
  }

  private mutating func unlink(_ place: Int32) {
    let node = nodes[Int(place)]
    if node.older >= 0 { nodes[Int(node.older)].newer = node.newer } else { oldest = node.newer }
    if node.newer >= 0 { nodes[Int(node.newer)].older = node.older } else { newest = node.older }
  }

  /// The next entries, in no order that means anything: all of them come in turn.
  /// - Parameter hand: where to go on; 0 to begin.
  func next(_ most: Int, from hand: inout Int) -> [Use] {
    var found: [Use] = []
    for _ in 0..<min(most, nodes.count) {
      if hand >= nodes.count { hand = 0 }
      let use = nodes[hand].use
      if place(of: use.sequence) == Int32(hand) { found.append(use) }
      hand += 1
    }
    return found
  }

  /// All entries, the one that was used least recently first.
  mutating func forEach(_ body: (Use) -> Bool) {
    moveUsed()
    var place = oldest
    while place >= 0 {
      let node = nodes[Int(place)]
      guard body(node.use) else { return }
      place = node.newer
    }
  }
}
