/// The entries of a cache in the order of their last use: a list through an array, with the place
/// of each by its sequence.
///
/// An entry takes some 90 bytes, whatever its key.
struct UseOrder: Sendable {
  struct Use: Sendable, Hashable {
    /// The newest entry of the key in the log.
    var sequence: UInt64
    /// Milliseconds since 1970 of its last use.
    var time: Int64
    /// How often it was read.
    var count: UInt32
    /// Bytes of key and value.
    var bytes: Int
    /// How long it is valid; nil while nobody has looked.
    var validity: Validity?

    init(sequence: UInt64, bytes: Int, time: Int64, count: UInt32 = 0) {
      (self.sequence, self.bytes, self.time, self.count) = (sequence, bytes, time, count)
    }
  }

  /// What a use changes comes first: it lies in one line of the processor's cache.
  private struct Node {
    /// The place of the next older entry, and of the next newer one; -1 for none.
    var older: Int32 = -1
    var newer: Int32 = -1
    var use: Use
  }

  private var nodes: [Node] = []
  private var free: [Int32] = []
  private var places = PlaceTable()
  private var oldest: Int32 = -1
  private var newest: Int32 = -1
  /// The places of uses that are being noted.
  private var used: [Int32] = []
  /// A sum over what was read ahead, so that those reads are not left out.
  private var touched: Int32 = 0
  /// Bytes of all entries.
  private(set) var bytes = 0

  var count: Int { places.count }

  /// The entry that was used least recently.
  var last: Use? { oldest < 0 ? nil : nodes[Int(oldest)].use }

  subscript(sequence: UInt64) -> Use? { place(of: sequence).map { nodes[Int($0)].use } }

  private func place(of sequence: UInt64) -> Int32? {
    places.find(sequence) { nodes[Int($0)].use.sequence == sequence }
  }

  /// Adds an entry as the one that was used last.
  mutating func add(_ use: Use) {
    remove(use.sequence)
    let place = free.popLast() ?? Int32(nodes.count)
    let node = Node(use: use)
    if place == nodes.count { nodes.append(node) } else { nodes[Int(place)] = node }
    link(place)
    places.insert(use.sequence, place)
    bytes += use.bytes
  }

  /// Takes an entry out.
  @discardableResult
  mutating func remove(_ sequence: UInt64) -> Use? {
    guard let place = places.remove(sequence, { nodes[Int($0)].use.sequence == sequence })
    else { return nil }
    unlink(place)
    free.append(place)
    let use = nodes[Int(place)].use
    bytes -= use.bytes
    return use
  }

  /// Notes that entries were read, in the order of their uses; one that is not known is left out.
  ///
  /// A use waits for memory at four places, which have nothing to do with those of another use: so
  /// each step is taken for all of them before the next one, and many wait together.
  /// - Parameter uses: sequences, and milliseconds since 1970.
  /// - Returns: how many are known.
  @discardableResult
  mutating func note(_ uses: [(sequence: UInt64, time: Int64)]) -> Int {
    used.removeAll(keepingCapacity: true)
    for use in uses { touched &+= places.home(of: use.sequence) }
    for use in uses {
      let place = places.home(of: use.sequence)
      if place >= 0 { touched &+= nodes[Int(place)].newer }
    }
    for use in uses { used.append(place(of: use.sequence) ?? -1) }
    for place in used where place >= 0 {
      let node = nodes[Int(place)]
      if node.older >= 0 { touched &+= nodes[Int(node.older)].newer }
      if node.newer >= 0 { touched &+= nodes[Int(node.newer)].older }
    }
    var known = 0
    for (place, use) in zip(used, uses) where place >= 0 {
      known += 1
      nodes[Int(place)].use.time = use.time
      if nodes[Int(place)].use.count < .max { nodes[Int(place)].use.count += 1 }
      guard place != newest else { continue }
      unlink(place)
      link(place)
    }
    return known
  }

  /// Remembers how long an entry is valid.
  mutating func note(_ validity: Validity, of sequence: UInt64) {
    guard let place = place(of: sequence) else { return }
    nodes[Int(place)].use.validity = validity
  }

  /// Puts a place at the end of the list.
  private mutating func link(_ place: Int32) {
    nodes[Int(place)].older = newest
    nodes[Int(place)].newer = -1
    if newest >= 0 { nodes[Int(newest)].newer = place } else { oldest = place }
    newest = place
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
  func forEach(_ body: (Use) -> Bool) {
    var place = oldest
    while place >= 0 {
      let node = nodes[Int(place)]
      guard body(node.use) else { return }
      place = node.newer
    }
  }
}
