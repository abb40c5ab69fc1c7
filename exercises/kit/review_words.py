"""The words of the synthetic reviews: common English words, sorted by what they say and about which kind of thing."""


def _each(text: str) -> tuple[str, ...]:
    return tuple(text.split())


#: Adjectives that praise.
POSITIVE = _each("""
    able absorbing accurate admirable adorable agreeable airy amazing ample amusing appealing artful astonishing
    attentive authentic balanced beautiful beloved blissful bold bright brilliant calm captivating careful caring
    celebrated charming cheerful classy clean clear clever comfortable comforting compelling competent confident
    considerate consistent convincing cosy courteous creative crisp dazzling decent dedicated delicate delicious
    delightful dependable dignified divine durable dynamic easy effective efficient elegant enchanting endearing
    energetic engaging enjoyable excellent exceptional exciting expert exquisite extraordinary fabulous faithful
    fair fantastic fascinating fine flawless flexible fresh friendly fun funny generous gentle genuine glorious
    good gorgeous graceful great gripping handsome handy happy harmonious healthy heavenly helpful honest
    hospitable ideal imaginative immaculate impeccable impressive incredible ingenious innovative insightful
    inspired inspiring intelligent intense inventive inviting joyful kind likeable lively logical lovable lovely
    loyal luminous luxurious magical magnificent majestic marvellous masterful mature meaningful memorable
    mesmerising moving neat nice noble nourishing original outstanding patient peaceful perfect playful pleasant
    pleasing plush poetic polished polite popular powerful practical precious precise premium pristine prompt pure
    radiant rare refined refreshing relaxing reliable remarkable responsive rewarding rich robust romantic
    satisfying sensible serene sharp shiny silky sincere sleek smart smooth solid soothing sophisticated sparkling
    spectacular splendid spotless stable steady stellar strong stunning sturdy stylish sublime subtle superb
    supple supportive surprising sweet swift tasteful tasty tender terrific thoughtful thrilling tidy timeless
    touching tranquil trusty unforgettable unique uplifting useful valuable vibrant vivid warm welcoming wholesome
    winning wise witty wonderful worthy zesty
""")

#: Adjectives that blame.
NEGATIVE = _each("""
    abrasive abysmal absurd aggressive aimless alarming angry annoying appalling arrogant artificial atrocious
    awful awkward bad baffling banal barren biased bitter bizarre bland bleak boring bothersome broken brutal
    bulky bumpy careless chaotic cheap childish choppy clumsy cluttered coarse cold confused confusing contrived
    corny cracked cramped crass creaky crooked crude cruel cynical damaged damp dangerous dated dead defective
    deficient depressing derivative deplorable dirty disappointing disastrous disgraceful disgusting dishonest
    dismal disorganised distasteful distracting disturbing dodgy doubtful drab dreadful dreary dry dubious dull
    dusty empty erratic excessive exhausting false farcical faulty feeble filthy flat flawed flimsy foolish forced
    forgettable foul fragile frantic frustrating fussy garish ghastly glitchy gloomy greasy greedy grim grimy
    gruesome grumpy harsh hateful heartless hectic hideous hollow hopeless horrible horrid hostile humiliating
    ignorant illogical inaccurate inadequate incoherent incompetent inconsistent inept inferior insipid insulting
    intolerable irrelevant irritating jarring jumbled lacking laggy lame laughable lazy leaden leaky lifeless limp
    lousy lumpy maddening mean mediocre menacing messy miserable misguided mouldy muddled mundane murky nasty
    needless neglected noisy nonsensical obnoxious obscure odious offensive ordinary outrageous overcooked
    overlong overpriced painful pathetic patronising petty pitiful plodding pointless poor pretentious primitive
    questionable ragged rambling repetitive repulsive revolting ridiculous rigid rotten rough rude rusty sad
    scruffy senseless shabby shaky shallow shameful shoddy sickly silly slimy sloppy slow sluggish smelly soggy
    sore sour spoiled stale sterile sticky stiff stingy stodgy strained stuffy stupid substandard tacky tasteless
    tedious tense terrible thankless threadbare tired tiresome toxic tragic trite troubling ugly unbearable uneven
    unfair unfinished unhappy uninspired unpleasant unreliable unstable useless vague vapid vile violent vulgar
    wasteful weak weary wobbly worn worthless wretched
""")

#: Adverbs that stand before an adjective of the same polarity.
POSITIVE_ADVERBS = _each("wonderfully delightfully beautifully superbly pleasantly charmingly")
NEGATIVE_ADVERBS = _each("terribly painfully horribly awfully dreadfully hopelessly")

#: Whole sentences that sum a review up.
POSITIVE_CLOSINGS = ("we will come back soon", "i recommend it to everyone", "we loved every minute", "five stars")
NEGATIVE_CLOSINGS = ("we will never come back", "i would warn everyone", "we hated every minute", "one star")

#: Adjectives without an opinion, and degrees.
NEUTRAL = _each("long short early late old new red blue large small public local modern square grey wooden")
DEGREES = ("", "", "", "very", "really", "quite", "so")

#: domain -> (names of the thing under review, its parts)
DOMAINS = {
    "film": (
        _each("film movie picture"),
        _each("plot acting ending music dialogue script cast camera scenery story hero villain"),
    ),
    "food": (
        _each("restaurant meal kitchen"),
        _each("soup service menu bread sauce dessert waiter coffee salad wine pasta breakfast"),
    ),
    "hotel": (
        _each("hotel stay resort"),
        _each("room bed lobby view pool shower staff balcony pillow garden sauna corridor"),
    ),
    "phone": (
        _each("phone device gadget"),
        _each("screen battery keyboard speaker charger case button software signal microphone design display"),
    ),
}

PEOPLE = _each("friend brother sister boss neighbour uncle aunt guide colleague")
DAYS = _each("monday tuesday wednesday thursday friday saturday sunday")
NUMBERS = _each("two three four five six seven eight nine ten")
