import Testing

@testable import TidemarkSyncProtocol

@Suite("Positions of a feed")
struct FeedRangeTests {
  private let range = FeedRange(
    epochs: [FeedEpoch(epoch: 7, firstOffset: 1), FeedEpoch(epoch: 3, firstOffset: 301)],
    head: 400)

  @Test("a position counts in the range of its epoch only")
  func contains() {
    #expect(range.contains(FeedPosition(epoch: 7, offset: 300)))
    #expect(range.contains(FeedPosition(epoch: 3, offset: 301)))
    #expect(range.contains(.beginning))
    #expect(!range.contains(FeedPosition(epoch: 7, offset: 301)))
    #expect(!range.contains(FeedPosition(epoch: 3, offset: 300)))
    #expect(!range.contains(FeedPosition(epoch: 3, offset: 401)))
    #expect(!range.contains(FeedPosition(epoch: 9, offset: 10)))
    #expect(!range.contains(FeedPosition(epoch: 7, offset: 0)))
  }

  @Test("the past that a reader has in common with a feed ends where its epoch does")
  func common() {
    #expect(range.lastCommonOffset(with: FeedPosition(epoch: 7, offset: 500)) == 300)
    #expect(range.lastCommonOffset(with: FeedPosition(epoch: 7, offset: 200)) == 200)
    #expect(range.lastCommonOffset(with: FeedPosition(epoch: 3, offset: 500)) == 400)
    #expect(range.lastCommonOffset(with: FeedPosition(epoch: 9, offset: 5)) == nil)
    #expect(range.lastCommonOffset(with: .beginning) == 0)
  }

  @Test("the past that two states of a feed have in common ends with the last epoch that both list")
  func commonRange() {
    func common(_ epochs: [(UInt64, UInt64)], _ head: UInt64) -> UInt64? {
      let epochs = epochs.map { FeedEpoch(epoch: $0.0, firstOffset: $0.1) }
      return range.lastCommonOffset(with: FeedRange(epochs: epochs, head: head))
    }
    #expect(common([(7, 1), (3, 301)], 400) == 400)
    #expect(common([(7, 1), (3, 301)], 350) == 350)
    #expect(common([(3, 301), (5, 380)], 700) == 379)
    #expect(common([(7, 1), (5, 290)], 700) == 289)
    #expect(common([(7, 1), (5, 320)], 700) == 300)
    // An epoch in which nothing was given out.
    #expect(common([(7, 1), (3, 301), (5, 301)], 310) == 300)
    #expect(common([(5, 1)], 10) == nil)
    #expect(common([], 0) == nil)
  }
}
