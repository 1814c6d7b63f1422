/// The keys of a merge's result in order: those of the frozen delta and those of the image that
/// do not stand in it.
struct MergeStream {
  /// Where a key comes from.
  enum Origin {
    /// A slot of the frozen delta and the ordinal that it replaces.
    case frozen(Int, replacing: Int?)
    /// An ordinal of the image.
    case image(Int)
  }

  /// The present key's origin.
  private(set) var origin = Origin.image(0)
  /// The present key's slot.
  private(set) var slot = Slot(sequence: 0, labelSet: 0, size: .deleted)

  private static let lookahead = 8

  private let store: SlotStore
  private let order: [UInt32]
  private var position = 0
  private let image: Image?
  private var window: ImageWindow?
  private var ordinal = 0
  private var block = -1
  private var blockOffset = 0
  private let buffer = KeyBuffer()
  private var slots: [Slot] = []

  init(_ input: MergeInput) {
    store = input.frozen.store
    order = input.frozenOrder.sorted(input.frozen.store)
    image = input.image
    window = input.image.map(ImageWindow.init)
  }

  /// The present key.
  var key: RawSpan {
    @_lifetime(borrow self)
    get {
      switch origin {
      case .frozen(let number, _): store.key(number)
      case .image(let ordinal): buffer.key(ordinal % ImageLayout.keysPerBlock)
      }
    }
  }

  /// Goes to the next key.
  /// - Returns: false if there is none.
  mutating func next() throws(IndexError) -> Bool {
    let count = image?.count ?? 0
    var takesFrozen = position < order.count
    prefetch()
    var replaced: Int?
    if ordinal < count {
      let number = ordinal / ImageLayout.keysPerBlock
      while block < number { try decodeNextBlock() }
      if takesFrozen {
        let frozen = store.key(Int(order[position]))
        let order = frozen.compare(to: buffer.key(ordinal % ImageLayout.keysPerBlock))
        takesFrozen = order <= 0
        if order == 0 { replaced = ordinal }
      }
    } else if !takesFrozen {
      return false
    }
    if takesFrozen {
      let number = Int(order[position])
      position += 1
      if replaced != nil { ordinal += 1 }
      origin = .frozen(number, replacing: replaced)
      slot = store.slot(number)
    } else {
      origin = .image(ordinal)
      slot = slots[ordinal % ImageLayout.keysPerBlock]
      ordinal += 1
    }
    return true
  }

  /// Asks for keys of the delta ahead of their turn: in key order they lie anywhere in memory.
  private func prefetch() {
    guard position + Self.lookahead * 2 < order.count else { return }
    store.prefetchRecord(Int(order[position + Self.lookahead * 2]))
    store.prefetchKey(Int(order[position + Self.lookahead]))
  }

  private mutating func decodeNextBlock() throws(IndexError) {
    guard let image, var window else { return }
    self.window = nil
    block += 1
    let (start, end) = try image.blockRange(block)
    guard start == blockOffset else { throw image.blockDamage(block) }
    blockOffset = end
    try window.load(.blocks, start, end - start)
    let keys = min(ImageLayout.keysPerBlock, image.count - block * ImageLayout.keysPerBlock)
    buffer.removeAll()
    slots.removeAll(keepingCapacity: true)
    do throws(FormatError) {
      let coded = ImageBlock(window.bytes(.blocks, start, end - start), count: keys)
      var walk = coded.walk
      for position in 0..<keys {
        try walk.next()
        buffer.append(shared: walk.shared, rest: walk.rest)
        slots.append(try coded.slot(position))
      }
    } catch {
      throw image.blockDamage(block)
    }
    self.window = window
  }
}
